/** This very process as the host: the answers of an app, in the shape of a client. */
import type { App } from '../app.js'
import type { OwnClient } from './client.js'

export function inProcess(app: App): OwnClient {
  return {
    where: 'in-process',
    run: (order, approver) => app.run(order, approver),
    begin: cwd => app.begin(cwd),
    plugins: async () => app.plugins(),
    hooks: async () => app.hooks(),
    tools: async () => app.tools(),
    models: async () => app.models(),
    commands: async () => app.commands(),
    command: (order, signal) => app.command(order, signal),
    steer: async (session, prompt) => {
      const after = (await app.events(session)).at(-1)!.seq
      return app.steer(session, prompt) ? after : undefined
    },
    sessions: () => app.sessions(),
    session: id => app.session(id),
    status: async () => app.status(),
    reload: ids => app.reload(ids),
    reloadHeld: () => app.reloadHeld(),
    stop: () => app.stop(),
    close: () => app.stop(),
    hide: text => app.hide(text),
  }
}
