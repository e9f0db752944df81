// `node benchmarks/peer_driver.mjs NAME` enqueues for a peer as it is told by its input, like `python -m benchmarks.peer_interface`
// does. `node benchmarks/peer_driver.mjs NAME work` is a worker.

import path from "node:path";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

import { counted } from "./peer_interface.mjs";

const PAYLOAD = "x".repeat(98);
const TOGETHER = 1000;
const CHUNK = 1000;
const WARM = 3000;

class Clock {
  jobs = 0;
  #began = performance.now();
  #cpu = process.cpuUsage();

  get seconds() {
    return (performance.now() - this.#began) / 1000;
  }

  figures(untimed) {
    const { user, system } = process.cpuUsage(this.#cpu);
    return { jobs: this.jobs + untimed, timed: this.jobs, seconds: this.seconds, cpu: (user + system) / 1e6 };
  }
}

const driver = (peer) => ({
  commands: ({ measure, processes }) => peer.commands(measure, processes),

  async many({ task, jobs, seconds, argument = PAYLOAD }) {
    const warm = jobs > 10 * WARM ? WARM : 0;
    for (let n = 0; n < warm; n += CHUNK) await peer.enqueueMany(task, Array(CHUNK).fill(argument));
    const clock = new Clock();
    while (clock.jobs < jobs - warm && clock.seconds < seconds) {
      const chunk = Math.min(CHUNK, jobs - warm - clock.jobs);
      await peer.enqueueMany(task, Array(chunk).fill(argument));
      clock.jobs += chunk;
    }
    return clock.figures(warm);
  },

  async each({ task, jobs, seconds, argument = PAYLOAD }) {
    for (let n = 0; n < 20; n++) await peer.enqueue(task, argument);
    const clock = new Clock();
    while (clock.jobs < jobs && clock.seconds < seconds) {
      for (let n = 0; n < 10; n++) await peer.enqueue(task, argument);
      clock.jobs += 10;
    }
    return clock.figures(20);
  },

  async together({ task, seconds }) {
    const all = () => Promise.all(Array.from({ length: TOGETHER }, () => peer.enqueue(task, PAYLOAD)));
    await all();
    const clock = new Clock();
    while (clock.seconds < seconds) {
      await all();
      clock.jobs += TOGETHER;
    }
    return clock.figures(TOGETHER);
  },

  async probe({ probes, seconds }) {
    const deadline = performance.now() + seconds * 1000;
    let sent = 0;
    while (sent < probes && (sent === 0 || performance.now() < deadline)) {
      const before = counted();
      await peer.enqueue("stamp", Number(process.hrtime.bigint()));
      sent += 1;
      const patience = performance.now() + 15_000;
      do {
        await sleep(8 + Math.random() * 8);
        if (performance.now() > patience) throw new Error("no worker has started a job for 15 s");
      } while (counted() <= before);
    }
    return sent;
  },
});

const [name, what] = process.argv.slice(2);
const peer = await import(pathToFileURL(path.join(import.meta.dirname, "peers", `${name}.mjs`)));
if (what === "work") {
  peer.work();
} else {
  const orders = driver(peer);
  await peer.start?.();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { order, ...details } = JSON.parse(line);
    console.log(JSON.stringify({ answer: (await orders[order](details)) ?? null }));
  }
  await peer.stop?.();
}
