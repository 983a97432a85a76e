/** Searches whose samples are one run each: how long anything takes decides nothing in tests. */
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Graph } from '../../src/runtime/streams.ts'

/** Milliseconds that a sample takes at least (`measureRounds`): what says so is not run again and again for one. */
const SAMPLE = 0.5

const graph: Graph = Object.getPrototypeOf(await createCpuDevice().graph([]))
const { time } = graph
let asked = 0

/** While `f` runs, the cpu device times what it recorded by running it once. */
export async function samplesOnce<T>(f: () => Promise<T>): Promise<T> {
  asked++
  graph.time = async function (this: Graph, repeats, between) {
    const [taken = 0] = await time.call(this, 1, between)
    return Array.from({ length: repeats }, () => Math.max(SAMPLE, taken))
  }
  try {
    return await f()
  } finally {
    if (--asked === 0) graph.time = time
  }
}
