/**
 * Shows how an agent starts another: the tool `task` runs a prompt in a session of its own and gives back its last words, so that the outer conversation stays short.
 * All hooks fire for it, with its parent and depth; who is asked for the outer turn is asked for the inner one, and it ends with the outer one.
 */
import { send, z, type Context, type RunEvent, type ToolRun } from 'harnessx'

export const name = 'subagent'
export const Config = z.strictObject({
  /** Steps of one task. */
  maxSteps: z.int().positive().default(30),
  /** Agents below agents: 1 means that a task can start none itself. */
  maxDepth: z.int().min(1).max(8).default(1),
  /** `<id>/<model>` or `<id>`. Left out: the model of the config. */
  model: z.string().min(1).optional(),
})

const TOOL = 'task'
const parameters = z.object({
  title: z.string().trim().min(1).max(80).describe('Three to six words, for the user.'),
  prompt: z.string().trim().min(1).describe('The whole task. The agent sees nothing of this conversation and can not ask back: say what it needs to know, what it may change, and what it is to report.'),
})

export function apply(ctx: Context, { maxSteps, maxDepth, model }: z.infer<typeof Config>) {
  ctx.tools.register({
    name: TOOL,
    description: 'Give a task that can be done by itself (a search, a review, a bounded change) to another agent with the same tools in the same workspace, and get its report. You see only the report.',
    parameters,
    async execute({ title, prompt }: z.infer<typeof parameters>, run: ToolRun) {
      const { id, cwd, depth } = run.session
      if (depth >= maxDepth) throw new Error(`agents go ${maxDepth} deep at most; do this yourself`)
      const task = await ctx.agents.run({ prompt, cwd, maxSteps, model, parent: { session: id, depth }, signal: run.signal })
      for await (const event of task.events) tellProgress(title, event, run)
      const { reason, text, message, stats } = await task.result
      run.signal.throwIfAborted()
      const report = text.trim() === '' ? 'It said nothing.' : text
      if (reason === 'completed') return report
      return { content: `the task ended ${reason} after ${stats.steps} ${stats.steps === 1 ? 'step' : 'steps'}${message ? ` (${message})` : ''}; its last words:\n${report}`, isError: true }
    },
  })
  /** Where the tool would refuse, it isn't offered. */
  ctx.on('agent/pre-request', async ({ session, tools }, next) => {
    if (session.depth < maxDepth || !tools.some(tool => tool.name === TOOL)) return
    const decision = await next()
    return decision.kind === 'reject' ? decision : send({ tools: decision.tools.filter(tool => tool !== TOOL) })
  })
}

function tellProgress(title: string, event: RunEvent, run: ToolRun): void {
  if (event.type === 'tool-intent') run.progress(`${title}: ${event.name}`)
}
