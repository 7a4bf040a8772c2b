import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "./api/queries.ts";
import { router } from "./app/router.tsx";
import { applyScheme } from "./app/scheme.ts";
import "./styles/main.css";
import "./styles/execution.css";

applyScheme();
const root = document.getElementById("root");
if (root === null) throw new Error("The page has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
