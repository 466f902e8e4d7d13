// @ts-check
// A zip archive of a few texts, not compressed: what the page hands in when a program is more than one file.

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
const UNIX = (3 << 8) | 20; // made on Unix, by version 2.0 of the format
const UTF8 = 1 << 11;
const FIRST_DAY = 0x21; // 1 January 1980, so that the same files make the same archive
const MODE = (0o100644 << 16) >>> 0; // a plain file that all may read

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Numbers of two and four bytes, the lowest first: [[size, value], …]. @param {[2 | 4, number][]} numbers */
function packed(numbers) {
  const view = new DataView(new ArrayBuffer(numbers.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of numbers) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return new Uint8Array(view.buffer);
}

/** @param {[string, Uint8Array][]} files  by name @returns {Blob} */
export function zipOf(files) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [name, data] of files) {
    const called = new TextEncoder().encode(name);
    const { length } = data;
    /** @type {[2 | 4, number][]} */
    const both = [[2, 20], [2, UTF8], [2, 0], [2, 0], [2, FIRST_DAY], [4, crc32(data)], [4, length], [4, length], [2, called.length], [2, 0]];
    const local = packed([[4, 0x04034b50], ...both]);
    directory.push(packed([[4, 0x02014b50], [2, UNIX], ...both, [2, 0], [2, 0], [2, 0], [4, MODE], [4, at]]), called);
    parts.push(local, called, data);
    at += local.length + called.length + length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = packed([[4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, size], [4, at], [2, 0]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}
