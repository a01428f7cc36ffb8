/**
 * What a server lists as its tools, read one by one: an entry that is no tool is left out, and costs none of the others. Pure.
 * Servers forget the `type` of a schema, or the schema; both mean an object.
 */
import { z } from 'harnessx'

export interface ListedTool { readonly name: string; readonly description: string; readonly inputSchema: Readonly<Record<string, unknown>>; readonly readOnly: boolean }

export const Page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional().catch(undefined) })

const text = z.string().catch('')
const Entry = z.object({
  name: z.string().min(1), title: text, description: text,
  inputSchema: z.looseObject({ type: z.literal('object').default('object') }).nullish().transform(schema => schema ?? { type: 'object' }),
  annotations: z.object({ readOnlyHint: z.boolean() }).optional().catch(undefined),
})

/** Of two with one name the first counts. */
export function readTools(listed: readonly unknown[]): { readonly tools: readonly ListedTool[]; readonly problems: readonly string[] } {
  const tools = new Map<string, ListedTool>(), problems: string[] = []
  for (const [place, one] of listed.entries()) {
    const read = Entry.safeParse(one), called = nameOf(one), which = called === undefined ? `number ${place + 1} in its list` : `its tool "${called}"`
    if (!read.success) problems.push(`${which} is left out: ${read.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`).join('; ')}`)
    else if (tools.has(read.data.name)) problems.push(`${which} is listed twice; the first counts`)
    else tools.set(read.data.name, { name: read.data.name, description: read.data.description.trim() || read.data.title, inputSchema: read.data.inputSchema, readOnly: read.data.annotations?.readOnlyHint ?? false })
  }
  return { tools: [...tools.values()], problems }
}

const Named = z.object({ name: z.string().min(1) })
const nameOf = (one: unknown): string | undefined => Named.safeParse(one).data?.name.slice(0, 100)
