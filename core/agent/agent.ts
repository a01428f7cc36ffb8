/**
 * The agent on a kernel: makes the services, declares the hooks, hangs up core's own handler. The one place where the parts of this folder meet.
 */
import { homedir } from 'node:os'
import type { Handler } from '../kernel/hooks.js'
import type { Kernel } from '../kernel/kernel.js'
import { Agents } from './agents.js'
import { Approvals } from './approvals.js'
import { askModel } from './ask-model.js'
import { Commands } from './commands.js'
import { declareHooks } from './hook-rules.js'
import { reject } from './hooks.js'
import { Models } from './models.js'
import type { SessionStore } from './session-events.js'
import type { WorkspaceService } from './services.js'
import { Tools } from './tools.js'
import { AGENT_DEFAULTS, type AgentConfig, type Ports } from './turn.js'
import type { Workspace } from './workspace.js'

export interface AgentOptions {
  readonly kernel: Kernel
  readonly store: SessionStore
  /** For sessions that end with the process. */
  readonly memoryStore: SessionStore
  readonly workspace: Workspace
  readonly config?: Partial<AgentConfig> | undefined
  /** Workspace of a new session when its caller names none. */
  readonly cwd?: string | undefined
}

export interface Agent {
  readonly agents: Agents
  readonly tools: Tools
  readonly models: Models
  readonly approvals: Approvals
  readonly commands: Commands
  /** A changed config, in force from the next look at it: limits at once, the model and system prompt from the next turn or step. */
  reconfigure(config: Partial<AgentConfig>): void
  /** Refuses new turns, stops those that run, closes every session; within `limitMs` (6,000). */
  stop(limitMs?: number): Promise<void>
}

export function createAgent({ kernel, store, memoryStore, workspace, config = {}, cwd }: AgentOptions): Agent {
  const { hooks, log } = kernel
  let current: AgentConfig = { ...AGENT_DEFAULTS, ...config }
  const tools = new Tools(kernel), models = new Models(kernel), commands = new Commands(kernel)
  const approvals = new Approvals(hooks, () => current.askTimeoutMs)
  const ports: Ports = { hooks, tools, models, approvals, workspace, log, config: () => current }
  const agents = new Agents(ports, { store, memoryStore, cwd })

  declareHooks(hooks)
  kernel.service('tools', scope => tools.view(scope))
  kernel.service('models', scope => ({ ...models.view(scope), ask: request => askModel({ ...ports, purseOf: session => agents.purseOf(session), cwd: cwd ?? homedir() }, scope, request) }))
  kernel.service('commands', scope => commands.view(scope))
  kernel.service('approvals', scope => approvals.view(scope))
  kernel.service('agents', scope => agents.view(scope))
  kernel.service('sessions', () => ({
    list: () => store.list(),
    read: id => store.read(id).catch((error: unknown) => memoryStore.read(id).catch(() => { throw error })),        // it may be kept in memory only
  }))
  const containment = containmentOf(workspace)
  kernel.service('workspace', () => containment)
  kernel.service('hooks', scope => ({ list: () => hooks.list(), define: (name, options) => hooks.define(scope, name, options) }))
  rejectArchived(kernel, agents)

  return {
    agents, tools, models, approvals, commands,
    reconfigure: config => { current = { ...AGENT_DEFAULTS, ...config } },
    stop: limitMs => agents.stop(limitMs),
  }
}

/** What plugins have of a workspace: not the yes of a person, which opens what `openFor` names. */
const containmentOf = (workspace: WorkspaceService): WorkspaceService => ({
  resolve: (session, path, mode) => workspace.resolve(session, path, mode),
  openFor: (session, callId, path, mode) => { workspace.openFor(session, callId, path, mode) },
  bounds: (session, callId) => workspace.bounds(session, callId),
  confine: (session, callId, launch, standing) => { workspace.confine(session, callId, launch, standing) },
  readFile: (session, path, options) => workspace.readFile(session, path, options),
  writeFile: (session, path, data, options) => workspace.writeFile(session, path, data, options),
})

/** A session that was archived while its turn runs takes no further step: core's own handler, before all others. */
function rejectArchived({ hooks, core }: Kernel, agents: Agents): void {
  const handler: Handler<'agent/pre-step'> = ({ session }) => { if (agents.isArchived(session.id)) return reject('the session is archived and takes no further step') }
  hooks.registerHandler(core, 'agent/pre-step', handler, { prepend: true })
}
