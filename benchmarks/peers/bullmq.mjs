// BullMQ for Node.

import { load, NAP_MS, PORT, stamp, countJob } from "../peer_interface.mjs";

export const ABOUT = {
  "title": "BullMQ (Node)",
  "guarantee": "at least once",
  "setup": "100 jobs at a time, removed when completed",
  "packages": ["bullmq@6.7.0", "ioredis@5.11.1"]
};

const { Queue, Worker } = load("bullmq");
const connection = { host: "127.0.0.1", port: PORT, maxRetriesPerRequest: null };
const opts = { removeOnComplete: true };
let queue;

export function commands(measure, processes) {
  return Array(processes).fill(["node", "benchmarks/peer_driver.mjs", "bullmq", "work"]);
}

export function start() {
  queue = new Queue("bench", { connection });
}

export async function enqueue(task, argument) {
  await queue.add(task, { argument }, opts);
}

export async function enqueueMany(task, args) {
  await queue.addBulk(args.map((argument) => ({ name: task, data: { argument }, opts })));
}

export function work() {
  const processor = async (job) => {
    if (job.name === "stamp") {
      stamp(job.data.argument);
    } else if (job.name === "nap") {
      await new Promise((resolve) => setTimeout(resolve, NAP_MS));
      countJob();
    } else {
      countJob();
    }
  };
  new Worker("bench", processor, { connection, concurrency: 100 });
}
