// A whole bot in one file, without a library: `node bot.js [DEED]` plays the first legal answer, and does its deed at its third
// decision. What the deeds are is in bot.py beside it.

"use strict";

const { createInterface } = require("readline");
const { Worker } = require("worker_threads");

const HOARD_MIB = 320;
const hoard = [];

function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const deeds = {
  hog() {
    for (let piece = 0; piece < HOARD_MIB / 8; piece++) {
      hoard.push(Buffer.alloc(8 << 20, 1));
      sleep(2);
    }
  },
  crash() {
    console.error("it was the butler"); // written at once, as stderr is a pipe
    process.exit(1);
  },
  spin() {
    for (;;);
  },
  stall() {
    sleep(Infinity);
  },
  ponder() {
    new Worker("for (;;);", { eval: true }).unref();
  },
};

const deed = deeds[process.argv[2]];
let asked = 0;

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

function hear(line) {
  const { type, match, ask, legal } = JSON.parse(line);
  if (type === "match") {
    say({ type: "ready", match, nonce: "node" });
  } else if (type === "ask") {
    asked += 1;
    if (asked === 3 && deed) deed();
    const value = Array.isArray(legal) ? legal[0] : legal.min;
    say({ type: "answer", match, ask, value });
  }
}

say({
  type: "hello",
  protocol: 1,
  name: process.env.ARENA_NAME || "bot",
  games: ["ace_king_queen"],
});
createInterface({ input: process.stdin }).on("line", hear);
