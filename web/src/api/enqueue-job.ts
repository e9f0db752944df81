/** Enqueues a job. */

import { unwrap, api, type Schemas } from "@/api/http-client";
import { withRawMember } from "@/lib/lossless-json";

export type NewJob = Omit<Schemas["NewJob"], "data">;
export type NewJobResponse = Schemas["NewJobResponse"];

/** Enqueues a job; idempotent by key. `data` is JSON text, so that large numbers keep their digits. */
export async function enqueueJob(job: NewJob, data: string, key: string): Promise<NewJobResponse> {
  const body = data.trim() === "" ? JSON.stringify(job) : withRawMember(job, "data", data);
  return unwrap(
    api.POST("/api/jobs", {
      params: { header: { "Idempotency-Key": key } },
      body: job,
      bodySerializer: () => body,
    }),
  );
}
