#!/usr/bin/env node
import { launch, programPath } from "./launch.js";

void launch(programPath(), process.argv.slice(2));
