/** Renders a component within a router, which links require. */

import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";

/** Renders within a router of one page. */
export function renderWithRouter(page: ReactNode): void {
  const router = createRouter({
    routeTree: createRootRoute({ component: () => page }),
    history: createMemoryHistory(),
  });
  // The application's router has other pages; a link only needs one that builds addresses.
  render(<RouterProvider router={router as never} />);
}
