/** Web worker: lays out large workflow graphs off the main thread. */

import { layoutGraph, type GraphShape } from "@/lib/workflow-graph-layout";

addEventListener("message", ({ data }: MessageEvent<GraphShape>) => postMessage(layoutGraph(data)));
