#!/usr/bin/env node
import { launch, mainPath, tuiArguments } from "./launch.js";

void launch(mainPath(), tuiArguments(process.argv.slice(2)));
