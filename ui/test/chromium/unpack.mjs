// Unpacks the Chromium of the package beside this file, and writes the program that starts it: `chromium-headless-shell`.
// It comes with the libraries and the fonts that a bare machine lacks; nothing is put anywhere but into node_modules.

import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
import { extract } from "tar-fs";

const MODULES = join(import.meta.dirname, "node_modules");
const PACKED = join(MODULES, "@sparticuz/chromium/bin");
const DRAFT = join(MODULES, ".unpacking");
const PLACE = join(MODULES, ".unpacked");

const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(PLACE, "fonts")}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(PLACE, "fonts-cache")}</cachedir>
</fontconfig>
`;
const START = `#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="$here/own-fonts.conf"
exec "$here/chromium" "$@"
`;

function unpack(name, target) {
  return pipeline(createReadStream(join(PACKED, name)), createBrotliDecompress(), target);
}

await rm(DRAFT, { recursive: true, force: true });
await rm(PLACE, { recursive: true, force: true });
await mkdir(DRAFT);
await Promise.all([
  unpack("chromium.br", createWriteStream(join(DRAFT, "chromium"), { mode: 0o755 })),
  ...["al2023.tar.br", "fonts.tar.br", "swiftshader.tar.br"].map((name) =>
    unpack(name, extract(DRAFT, { chown: false })),
  ),
  writeFile(join(DRAFT, "own-fonts.conf"), FONTS),
  writeFile(join(DRAFT, "chromium-headless-shell"), START, { mode: 0o755 }),
]);
await rename(DRAFT, PLACE);
