/** The explorer's pages: draws the view that the address names. */

import { render } from "preact";
import { App } from "./app.tsx";
import { restoreTheme } from "./theme.ts";
import "./style.css";

restoreTheme();
render(<App />, document.body);
