/** What `hx plugins new --from` knows: names alone, for the command line; the texts are in plugin-templates.ts. */
export const KINDS = ['guard', 'rewrite', 'observe', 'around', 'tool', 'service', 'model'] as const
export type Kind = (typeof KINDS)[number]
