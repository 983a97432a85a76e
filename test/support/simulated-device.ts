/**
 * Searches in simulated time: a cpu device on which runs that are timed take the milliseconds that a test states, by the clock of
 * this process. Nothing is executed for them, and how busy the machine is decides nothing.
 */
import { type Device, devices } from '../../src/node.ts'
import type { Command } from '../../src/runtime/device.ts'

let ahead = 0
// The host's, whichever file of tests of this process replaced it before.
const { now } = Object.getPrototypeOf(performance) as { now(): number }
performance.now = () => now.call(performance) + ahead

/** Timers of `withSimulatedTimers`. */
const timers = new Map<unknown, { readonly due: number; fire(): void }>()

function fireTimers(): void {
  for (const [timer, { due, fire }] of timers) {
    if (performance.now() < due) continue
    clearTimeout(timer as NodeJS.Timeout)
    fire()
  }
}

/** Timers of at least this many ms stay in real time: they wait for worker threads, which answer in real time. */
const LONGEST_MS = 10_000

/** Timers that `f` sets are due by the simulated clock, too. */
export async function withSimulatedTimers<T>(f: () => Promise<T>): Promise<T> {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const setSimulated = (fire: () => void, ms = 0): NodeJS.Timeout => {
    const timer = set(fire, ms)
    if (ms < LONGEST_MS) timers.set(timer, { due: performance.now() + ms, fire })
    return timer
  }
  const clearSimulated: typeof clear = (timer) => {
    timers.delete(timer)
    clear(timer)
  }
  Object.assign(globalThis, { setTimeout: setSimulated, clearTimeout: clearSimulated })
  try {
    return await f()
  } finally {
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear })
    timers.clear()
  }
}

/** Two runs of a kernel that takes so long warm it up, and the budgets of measurements are spent after a sample or two. */
const FIRST_MS = 500

/** Each kernel takes twice as long as the one that was timed before it first: none is measured longer than one sample. */
function doubling(): (commands: readonly Command[]) => number {
  const known = new Map<string, number>()
  return (commands) => {
    const text = commands.map((c) => (c.kind === 'launch' ? c.module.text.text : c.kind)).join()
    if (!known.has(text)) known.set(text, FIRST_MS * 2 ** known.size)
    return known.get(text)!
  }
}

export interface Simulation {
  /** Called before runs are timed. */
  readonly before?: (() => void | Promise<void>) | undefined
  /** Milliseconds of a run; `doubling`. */
  readonly ms?: ((commands: readonly Command[]) => number) | undefined
}

/** Only runs that are timed are simulated: results that are compared are computed. */
export async function simulatedDevice(simulation: Simulation = {}): Promise<Device> {
  // Each process has its own device lock, so that simulating processes do not wait for each other.
  return simulated(Object.assign(await open(), { chip: { ordinal: process.pid } }), simulation)
}

/** The same device. */
export function simulated<T extends Device>(device: T, { before, ms = doubling() }: Simulation = {}): T {
  const graph = device.graph.bind(device)
  const timed = async (commands: readonly Command[], repeats: number): Promise<number[]> => {
    await before?.()
    const times = Array.from({ length: repeats }, () => ms(commands))
    for (const t of times) ahead += t
    fireTimers()
    return times
  }
  device.time = timed
  device.graph = async (commands) =>
    Object.assign(await graph(commands), { time: (repeats: number) => timed(commands, repeats) })
  return device
}

const { cpu: open } = devices
let uses = 0

/** While `f` runs, cpu devices of this process are simulated. */
export async function onSimulatedDevices<T>(f: () => Promise<T>, simulation: Simulation = {}): Promise<T> {
  uses++
  Object.assign(devices, { cpu: () => simulatedDevice(simulation) })
  try {
    return await f()
  } finally {
    if (--uses === 0) Object.assign(devices, { cpu: open })
  }
}
