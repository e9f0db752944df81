import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["node_modules", "src/api/schema.d.ts", "public", "*.config.*"] },
  js.configs.recommended,
  ...ts.configs.strictTypeChecked,
  { languageOptions: { parserOptions: { project: "./tsconfig.json" } } },
  hooks.configs.flat.recommended,
  {
    rules: {
      // A route's loader redirects by throwing what the router makes.
      "@typescript-eslint/only-throw-error": "off",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      // Its advice to split components from constants is for hot reloading; style.md decides what stands together.
      "react-hooks/incompatible-library": "off",
    },
  },
  {
    // jsdom is not what the types say of a browser.
    files: ["src/test/setup-jsdom.ts"],
    rules: {
      "@typescript-eslint/no-unnecessary-condition": "off",
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/no-empty-function": "off",
    },
  },
);
