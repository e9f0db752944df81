// The interface of `peer_interface.py`, for peers in JavaScript: `peers/<name>.mjs` exports `ABOUT` (as JSON), `commands`,
// `enqueue`, `enqueueMany`, perhaps `start` and `stop`; and `work`, which runs the worker in this process.
// `peer_driver.mjs` is the process that enqueues.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

export const PORT = Number(process.env.BENCH_PORT);
export const NAP_MS = 10;
const SLOTS = 4096;
const folder = process.env.BENCH_FOLDER;

// A package of the peer's own environment.
export function load(name) {
  return createRequire(path.join(process.env.BENCH_ENVIRONMENT, "package.json"))(name);
}

// Node has no shared memory for files: the count is written a few milliseconds after it has changed.
let count = 0;
let file = null;
let isPending = false;
const cell = new BigUint64Array(1);

function flush() {
  isPending = false;
  file ??= fs.openSync(path.join(folder, "job_counters"), "r+");
  cell[0] = BigInt(count);
  fs.writeSync(file, Buffer.from(cell.buffer), 0, 8, (process.pid % SLOTS) * 8);
}

export function countJob() {
  count += 1;
  if (!isPending) {
    isPending = true;
    setTimeout(flush, 4);
  }
}

export function stamp(sent) {
  const passed = Number(process.hrtime.bigint()) - sent;
  fs.appendFileSync(path.join(folder, "stamps"), `${passed}\n`);
  countJob();
}

export function counted() {
  const bytes = fs.readFileSync(path.join(folder, "job_counters"));
  return Number(new BigUint64Array(bytes.buffer, bytes.byteOffset, SLOTS).reduce((sum, one) => sum + one, 0n));
}
