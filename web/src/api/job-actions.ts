/** Actions on one job. */

import { api, type Schemas } from "@/api/http-client";
import { withRawMember } from "@/lib/lossless-json";

export type JobChange = Pick<Schemas["JobChange"], "priority" | "delay" | "run_at">;

function dataBody(data: string) {
  return { body: {}, bodySerializer: () => withRawMember({}, "data", data) };
}

/** The job actions; each returns a message for the toast. */
export const jobActions = {
  redrive: async (id: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/redrive", { params: { path: { job_id: id } } });
    return "Redriven";
  },
  redriveWithData: async (id: string, data: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/redrive", { params: { path: { job_id: id } }, ...dataBody(data) });
    return "Redriven with the new data";
  },
  replaceData: async (id: string, data: string): Promise<string> => {
    await api.PATCH("/api/jobs/{job_id}", { params: { path: { job_id: id } }, ...dataBody(data) });
    return "Updated";
  },
  cancel: async (id: string, reason: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/cancel", { params: { path: { job_id: id } }, body: { reason } });
    return "Cancelled";
  },
  update: async (id: string, change: JobChange): Promise<string> => {
    await api.PATCH("/api/jobs/{job_id}", { params: { path: { job_id: id } }, body: change });
    return "Updated";
  },
  remove: async (id: string): Promise<string> => {
    await api.DELETE("/api/jobs/{job_id}", { params: { path: { job_id: id } } });
    return "Deleted";
  },
};
