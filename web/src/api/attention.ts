/** What needs attention: the verdict and the findings of the health rules. */

import type { Schemas } from "@/api/http-client";

export type Finding = Schemas["Finding"];
export type Verdict = Schemas["OverviewVerdict"];
