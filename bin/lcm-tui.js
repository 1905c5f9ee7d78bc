#!/usr/bin/env node
import { launch, programPath, tuiArguments } from "./launch.js";

void launch(programPath(), tuiArguments(process.argv.slice(2)));
