/** Lays out large graphs beside the page, which stays quick. */

import { layoutOf, type FlowShape } from "@/lib/flow-layout";

addEventListener("message", ({ data }: MessageEvent<FlowShape>) => postMessage(layoutOf(data)));
