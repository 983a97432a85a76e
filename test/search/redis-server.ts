/** Servers of Redis for tests: on a free port of this machine alone, with what they write in a folder. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Whether the machine has one. */
export const HAS_REDIS = spawnSync('redis-server', ['--version']).status === 0

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export class RedisServer {
  readonly url: string
  readonly #args: readonly string[]
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string) {
    this.url = `redis://127.0.0.1:${port}`
    // What is acknowledged is on the disk.
    const kept = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
    this.#args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...kept]
  }

  static async start(folder: string): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), folder)
    await server.start()
    return server
  }

  async start(): Promise<void> {
    const child = spawn('redis-server', [...this.#args], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#process = child
    let said = ''
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (text) => {
        said += text
        if (/eady to accept connections/.test(said)) resolve()
      })
      child.on('exit', () => reject(new Error(said)))
    })
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.removeAllListeners('exit')
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}
