import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { nonce } from "@/lib/nonce";
import { makeQueryClient } from "@/query";
import { makeRouter } from "@/router";
import "@/styles.css";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no place for the application");

// Radix adds a style element where a dialog holds the page behind it still.
setNonce(nonce);

const queryClient = makeQueryClient();
const router = makeRouter(queryClient);

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
