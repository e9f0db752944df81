// Shows the progress of one Rota job in a page: served by `rota server` as /progress.js.
//
//   import { followJob } from "https://jobs.example.com/progress.js";
//   followJob(token, (job) => { bar.value = job.percent; });

/**
 * Follows a job until it has ended.
 *
 * @param {string} token - from `job.progress_token()` in Python; permits only this.
 * @param {(job: {id: string, state: string, percent: number, done: number, total: number, note: string,
 *   seconds_left: number | null, attempt: number, is_ended: boolean}) => void} onChange - called for every change, and
 *   once at the beginning. A lost connection is opened again, and then it is called with the current state.
 * @param {{server?: string}} options - the address of `rota server`, unless this file was loaded from there.
 * @returns {{ended: Promise<object>, close: () => void}} `ended` resolves with the last change. It is rejected if the
 *   token is refused or expires.
 */
export function followJob(token, onChange, options = {}) {
  const url = new URL("api/progress", new URL(options.server ?? ".", import.meta.url));
  url.searchParams.set("token", token);
  const source = new EventSource(url);
  const ended = new Promise((resolve, reject) => {
    source.addEventListener("job", (event) => {
      const job = JSON.parse(event.data);
      if (job.is_ended) {
        source.close();
        resolve(job);
      }
      onChange(job);
    });
    source.addEventListener("trouble", (event) => {
      source.close();
      reject(new Error(JSON.parse(event.data).message));
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        reject(new Error("the server refused the progress token: it is not valid or has expired"));
      }
    });
  });
  ended.catch((error) => console.warn(`Rota: ${error.message}`));
  return { ended, close: () => source.close() };
}
