/** Search params of the queue page: those of its charts. */

import { readChartSearch, type ChartSearch } from "@/lib/chart-period";

export type QueueSearch = ChartSearch;

export const readQueueSearch = readChartSearch;
