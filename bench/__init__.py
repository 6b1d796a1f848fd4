"""Benchmarks: the runtime beside a floor of plain asyncio, and beside the raw limits of the machine, in one run."""
