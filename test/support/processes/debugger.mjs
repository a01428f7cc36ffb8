/** A debugger in a thread of its own, attached to the main thread as an editor attaches: it places a breakpoint by the map that each script carries, tells where it stopped in the source, and goes on. */
import { Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { generatedPositionFor, LEAST_UPPER_BOUND, originalPositionFor, TraceMap } from '@jridgewell/trace-mapping'

const { source, line } = workerData
const maps = new Map()
const session = new Session()
session.connectToMainThread()
session.on('Debugger.scriptParsed', ({ params: { scriptId, sourceMapURL } }) => {
  if (!sourceMapURL?.startsWith('data:application/json;base64,')) return
  const map = new TraceMap(JSON.parse(Buffer.from(sourceMapURL.split('base64,')[1], 'base64').toString()))
  if (!map.sources.includes(source)) return
  maps.set(scriptId, map)
  const { line: generated, column } = generatedPositionFor(map, { source, line, column: 0, bias: LEAST_UPPER_BOUND })
  session.post('Debugger.setBreakpoint', { location: { scriptId, lineNumber: generated - 1, columnNumber: column } }, error => { parentPort.postMessage(error ? { failed: error.message } : { placed: scriptId }) })
})
session.on('Debugger.paused', ({ params: { callFrames: [frame] } }) => {
  const { scriptId, lineNumber, columnNumber } = frame.location
  const map = maps.get(scriptId)
  const at = map && originalPositionFor(map, { line: lineNumber + 1, column: columnNumber })
  parentPort.postMessage({ stopped: { source: at?.source, line: at?.line, function: frame.functionName } })
  session.post('Debugger.resume')
})
session.post('Debugger.enable', () => { parentPort.postMessage({ attached: true }) })
parentPort.on('message', () => { session.disconnect(); process.exit() })
