import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { cspNonce } from "@/lib/csp-nonce";
import { createQueryClient } from "@/query-client";
import { createAppRouter } from "@/router";
import "@/styles.css";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no place for the application");

// Radix adds a style element when a dialog locks scrolling.
setNonce(cspNonce);

const queryClient = createQueryClient();
const router = createAppRouter(queryClient);

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
