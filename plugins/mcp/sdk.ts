/**
 * The one place that loads the MCP SDK: with the first server, and with one clear sentence where it is not installed. The host installs without it.
 */
import { messageOf } from 'harnessx'

const PACKAGE = '@modelcontextprotocol/sdk'

export type Sdk = Awaited<ReturnType<typeof load>>

async function load() {
  const [{ Client }, { StreamableHTTPClientTransport, StreamableHTTPError }, { deserializeMessage, serializeMessage }, { CallToolResultSchema, McpError, ErrorCode, ToolListChangedNotificationSchema }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'), import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/shared/stdio.js'), import('@modelcontextprotocol/sdk/types.js'),
  ])
  return { Client, StreamableHTTPClientTransport, StreamableHTTPError, deserializeMessage, serializeMessage, CallToolResultSchema, McpError, ErrorCode, ToolListChangedNotificationSchema }
}

export async function loadSdk(): Promise<Sdk> {
  try { return await load() } catch (error) {
    if (!messageOf(error).includes(PACKAGE)) throw error
    throw new Error(`needs the package "${PACKAGE}", which is not installed; run: npm install ${where(import.meta.dirname)} ${PACKAGE}@1`, { cause: error })
  }
}
/** The option that makes npm install it where this file looks for it. */
function where(folder: string): string {
  const [above, ...below] = folder.split('/node_modules/')
  if (below.length === 0) return `--prefix ${folder.replace(/\/(dist\/)?plugins(\/mcp)?$/, '')}`
  return above!.endsWith('/lib') ? '-g' : `--prefix ${above}`
}
