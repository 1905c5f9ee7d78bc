#!/usr/bin/env node
import { launch, mainPath } from "./launch.js";

void launch(mainPath(), process.argv.slice(2));
