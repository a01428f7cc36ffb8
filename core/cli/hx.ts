#!/usr/bin/env node
/**
 * The bin: before anything worth it is loaded, sees to it that code stays compiled from one run to the next, by Node's own cache where there is one (22.1 and later).
 * Either cache is code that will run, so it stands in a folder of the user's own and never in a shared temporary one.
 */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { keepCompiled, make } from './code-cache.js'

const { HX_HOME = '', XDG_CACHE_HOME = '', HOME } = process.env
const { enableCompileCache } = process.getBuiltinModule('node:module') as { enableCompileCache?: (folder: string) => unknown }
const folder = isAbsolute(HX_HOME) ? join(HX_HOME, 'cache') : join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(HOME || homedir(), '.cache'), 'hx')
if (!enableCompileCache) keepCompiled(folder)
else if (make(folder)) enableCompileCache(folder)            // Node would make it itself, and never end where that can't be done (/proc)
void import('./main.js').then(({ run }) => run())
