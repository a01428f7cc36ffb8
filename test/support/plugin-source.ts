/** Source of a plugin of a given size, as TypeScript with types to strip, and the same size of plain JavaScript: what reloads and their floor are measured with. */

/** `version` is put into `globalThis.hxVersions[id]` by apply; a handler and a tool are there to be switched. */
export const pluginOfSize = (id: string, version: number, bytes: number, more = ''): string => `import { block, type Context } from 'harnessx'
${more}
export const name = '${id}'
const version: number = ${version}
${functions(bytes - 500 - more.length, ': number', ': string')}
export function apply(ctx: Context): void {
  ctx.on('agent/pre-tool-use', ({ call }) => call.arguments['version'] === version ? block(f0(version)) : undefined)
  ctx.tools.register({ name: '${id}', description: 'The version.', parameters: { type: 'object' }, execute: () => f0(version) })
  const all: Record<string, number> = (globalThis as any).hxVersions ??= {}
  all['${id}'] = version
}
`
/** A script that puts `version` into `globalThis.hxFloor`. */
export const scriptOfSize = (version: number, bytes: number): string => `${functions(bytes - 60, '', '')}\nglobalThis.hxFloor = ${version}\n`

function functions(bytes: number, number: string, string: string): string {
  let text = ''
  for (let i = 0; i === 0 || text.length < bytes; i++) text += `function f${i}(a${number}, b${string} = 'x${i}')${string} {\n  const parts = [a, b, ${i}].map(part => String(part) + '${i}')\n  return parts.length > 2 ? parts.join('-') : b\n}\n`
  return text
}
