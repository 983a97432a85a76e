/** Redis and its queues, through `ioredis` and `bullmq`, which are optional. */
import { createHash } from 'node:crypto'
import type { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { fail, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import { trialId } from '../records/identity.ts'
import type { DeviceIdentity } from '../records/types.ts'
import type { Point } from '../types.ts'

/** Milliseconds until the first connection fails; after that, reconnection is unlimited. */
const PATIENCE_MS = 5000
/** Milliseconds between attempts to reconnect. */
const RECONNECT_MS = 500
/** Minimum version of Redis that the queues require. */
const MIN_VERSION = 5

export const PREFIX = 'sparsetile'
export const studyKey = (id: string): string => `${PREFIX}:study:${id}`
export const trialsKey = (id: string): string => `${studyKey(id)}:trials`
/** Redis key of the devices of workers, by the name of their queue. */
export const DEVICES_KEY = `${PREFIX}:devices`

/** Job id with a prefix, because BullMQ reserves numbers for its own ids. */
export const jobId = (study: string, point: Point, share = 1): string =>
  `trial-${trialId(study, point)}${share === 1 ? '' : `-${share}`}`

/** One queue for each kind of device, chip, driver and compiler, so that workers only get trials whose times hold for them. */
export function queueName({ kind, name, driver }: DeviceIdentity, compiler: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([kind, name, driver, compiler]))
    .digest('hex')
  return `${kind}-${name.replace(/[^A-Za-z0-9]+/g, '-')}-${hash.slice(0, 12)}`
}

export interface Engine {
  readonly bullmq: typeof import('bullmq')
  readonly redis: Redis
  /** The server without its password. */
  readonly address: string
  close(): void
}

/** @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable` */
export async function connectEngine(url: string): Promise<Engine> {
  const address = addressOf(url)
  const { bullmq, Client } = await packages()
  const redis = new Client(url, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    // Commands wait without limit, so that a restarted server is reconnected.
    maxRetriesPerRequest: null,
    retryStrategy: () => RECONNECT_MS,
  })
  let last = ''
  redis.on('error', (e: Error) => {
    last = e.message
  })
  const late = new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error(last || 'it does not answer')), PATIENCE_MS).unref(),
  )
  try {
    const about = await Promise.race([redis.connect().then(() => redis.info('server')), late])
    checkVersion(about, address)
  } catch (e) {
    redis.disconnect()
    if (e instanceof SptError) throw e
    fail({
      code: 'studies/unreachable',
      message: `there is no Redis at ${address} that can be used: ${last || (e as Error).message}`,
      expected: 'a running server',
      hint: 'start a server (redis-server --appendonly yes), and check the address and password',
    })
  }
  return { bullmq, redis, address, close: () => redis.disconnect() }
}

/** A server without a reported version is accepted. */
function checkVersion(about: string, address: string): void {
  const version = /^redis_version:((\d+)\S*)/m.exec(about)
  if (!version || Number(version[2]) >= MIN_VERSION) return
  fail({
    code: 'studies/version',
    message: `the Redis at ${address} is of version ${version[1]}`,
    expected: `version ${MIN_VERSION} or later`,
    hint: 'start a newer server',
  })
}

interface Packages {
  readonly bullmq: typeof import('bullmq')
  readonly Client: typeof Redis
}

async function packages(): Promise<Packages> {
  try {
    return { bullmq: await import('bullmq'), Client: (await import('ioredis')).Redis }
  } catch (e) {
    const [line] = (e instanceof Error ? e.message : String(e)).split('\n')
    return fail({
      code: 'studies/unavailable',
      message: `shared studies need the packages bullmq and ioredis, which cannot be loaded: ${line}`,
      hint: 'npm install bullmq ioredis (optional dependencies)',
    })
  }
}

function addressOf(url: string): string {
  let parsed: URL | undefined
  try {
    parsed = new URL(url)
  } catch {
    // Reported below.
  }
  if (parsed && /^rediss?:$/.test(parsed.protocol) && parsed.hostname !== '')
    return `${parsed.hostname}:${parsed.port || '6379'}`
  return fail({
    code: 'studies/address',
    // An invalid address may contain a password.
    message: `${/:.*@/.test(url) ? 'what was given' : nameText(url)} is not the address of a Redis server`,
    expected: 'redis://HOST:PORT, with a password redis://:PASSWORD@HOST:PORT, encrypted rediss://…',
  })
}

/** Opens a queue, whose connection stays open when the queue is closed. @throws errors of the connection */
export function openQueue({ bullmq, redis }: Engine, name: string): Queue {
  const queue = new bullmq.Queue(name, { connection: redis, prefix: PREFIX })
  // Errors are those of the connection, which reconnects.
  queue.on('error', () => {})
  return queue
}
