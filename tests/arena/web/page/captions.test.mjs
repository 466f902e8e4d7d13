// How the events of a person's own seat go to the arena for their words.

import assert from "node:assert/strict";
import { test } from "node:test";

const FRAME_BYTES = 64 * 1024; // of a viewer, as the arena has it

const sockets = [];
globalThis.WebSocket = class {
  static CONNECTING = 0;
  static OPEN = 1;
  readyState = 1;
  frames = [];
  constructor() {
    sockets.push(this);
  }
  send(text) {
    this.frames.push(text);
  }
  close() {}
};
const paused = [];
globalThis.setTimeout = (go) => paused.push(go);
globalThis.document = { baseURI: "http://localhost/" };
globalThis.location = new URL("http://localhost/");
globalThis.addEventListener ??= () => {};
const { Captioned } = await import("../page/views/play_captions.js");

test("a long past goes in frames that the arena takes, one after another", async () => {
  const shown = [];
  const captioned = new Captioned("toy", 0, ["Pia"], (events) => shown.push(...events));
  for (let at = 0; at < 250; at++) {
    captioned.put({ event: { event: "answered", seat: 0, value: at }, answers: { kind: "bid", hand: "ä".repeat(400) } });
  }
  await null;

  assert.equal(sockets.length, 1);
  const [{ frames, onmessage }] = sockets;
  for (let answered = 0; answered < frames.length; answered++) {
    assert.equal(frames.length, answered + 1, "no frame is sent before the one before it is answered");
    assert.ok(new TextEncoder().encode(frames[answered]).length <= FRAME_BYTES);
    const captions = JSON.parse(frames[answered]).events.map(({ value }) => ({ text: `bids ${value}` }));
    onmessage({ data: JSON.stringify({ type: "captions", captions }) });
    for (const go of paused.splice(0)) go();
  }
  assert.deepEqual(shown.map(({ event }) => event.text), Array.from({ length: 250 }, (_, at) => `bids ${at}`));
  assert.equal(captioned.isBehind, false);
});
