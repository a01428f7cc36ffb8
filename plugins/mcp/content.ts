/**
 * What the model reads of a server's answer: text as it is, everything else described and kept as a file that it can name. Bounded, whatever a server sends.
 * Knows no server; writes only into the session's output folder.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, type ToolOutput } from 'harnessx'

interface Resource { readonly uri: string; readonly mimeType?: string | undefined; readonly text?: string; readonly blob?: string }
/** As the protocol has it; what is not known is shown as JSON. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly resource: Resource }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string | undefined; readonly description?: string | undefined }
export interface Answer { readonly content?: readonly Block[] | undefined; readonly structuredContent?: unknown; readonly isError?: boolean | undefined }

/** `folder` is asked only when there is something to keep. */
export async function readAnswer({ content = [], structuredContent, isError = false }: Answer, folder: () => string, maxCharacters: number): Promise<ToolOutput> {
  const parts = await Promise.all(content.map(block => describe(block, folder)))
  if (parts.length === 0 && structuredContent !== undefined) parts.push(JSON.stringify(structuredContent, null, 2))
  const whole = parts.join('\n')
  return { content: await bounded(whole === '' ? '(no output)' : whole, folder, maxCharacters), isError }
}

async function describe(block: Block, folder: () => string): Promise<string> {
  switch (block.type) {
    case 'text': return block.text
    case 'image': case 'audio': return kept(block.type, block.mimeType, block.data, folder)
    case 'resource': {
      const { uri, mimeType, text, blob } = block.resource
      return text === undefined ? kept(`resource ${uri}`, mimeType ?? 'unknown type', blob ?? '', folder) : `[resource ${uri}]\n${text}`
    }
    case 'resource_link': return `[link to ${block.name}: ${block.uri}${block.mimeType === undefined ? '' : `, ${block.mimeType}`}]${block.description === undefined ? '' : ` ${block.description}`}`
    default: return JSON.stringify(block)
  }
}
/** Base64 is nothing to read: the bytes go into a file. */
async function kept(what: string, mimeType: string, base64: string, folder: () => string): Promise<string> {
  const bytes = Buffer.from(base64, 'base64')
  const ending = /^[a-z]+\/([a-z0-9]{1,8})/i.exec(mimeType)?.[1] ?? 'bin'
  return `[${what}, ${mimeType}, ${bytes.length} bytes, ${await keep(bytes, ending, folder)}]`
}
async function bounded(text: string, folder: () => string, maxCharacters: number): Promise<string> {
  if (text.length <= maxCharacters) return text
  return `${text.slice(0, maxCharacters)}\n[cut here: ${text.length - maxCharacters} of ${text.length} characters are missing; the whole is ${await keep(text, 'txt', folder)}]`
}
/** A full disk costs the file, not the answer. */
async function keep(data: string | Uint8Array, ending: string, folder: () => string): Promise<string> {
  try {
    const path = join(folder(), `mcp-${randomBytes(4).toString('hex')}.${ending}`)
    await mkdir(folder(), { recursive: true, mode: 0o700 })
    await writeFile(path, data, { mode: 0o600 })
    return `in "${path}"`
  } catch (error) { return `not kept (${messageOf(error)})` }
}
