"""Virtual time and a simulated disk: what replays, storms and tests run on."""
