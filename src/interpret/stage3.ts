/**
 * Interpreter of Stage III plans: blocks (or clusters of blocks) run one after another, the threads of a block in turns from
 * barrier to barrier. Undefined behaviour that a device may hide is an `InternalError` here: an index out of bounds, a race
 * between two threads, threads of a block waiting at different barriers.
 *
 * Memory holds numbers; 16-bit floats are not rounded.
 */
import { invariant } from '../ast/diagnostics/diagnostic.ts'
import { repeat, sectionsOf } from '../ir/coordinates/rounds.ts'
import type { Clear, Kernel3, Launch } from '../ir/statements/loops.ts'
import { evaluate } from '../ir/values/evaluate.ts'
import { compileBody, lockstep, type Threads } from './lockstep.ts'
import { type Cells, cellsOf } from './memory-cells.ts'
import { Memory } from './races.ts'
import type { Frame, Instructions } from './thread-code.ts'

/**
 * Runs `plan` in place on `buffers`, one array for each of `plan.buffers` (a missing `local` is allocated).
 * @throws InternalError for accesses out of range, races, barriers that not all threads of a block reach, and declared
 * instructions without `instructions`
 */
export function interpretPlan(
  plan: Kernel3,
  buffers: ReadonlyMap<string, Cells>,
  params: ReadonlyMap<string, number>,
  instructions?: Instructions,
): void {
  const memory = new Map<string, Memory>()
  for (const b of plan.buffers) {
    const length = Math.max(0, evaluate(b.shape[0]!, params))
    memory.set(b.name, new Memory(b, cellsOf(b, length, buffers)))
  }
  const run = (step: Clear | Launch): void => {
    if (step.kind === 'clear') memory.get(step.buffer)!.clear()
    else {
      for (const m of memory.values()) m.begin()
      runLaunch(step, memory, params, instructions)
    }
  }
  for (const s of sectionsOf(plan.steps)) {
    if (s.kind !== 'section') {
      run(s)
      continue
    }
    const { count, flag } = s.rounds
    const isLast = (): boolean => flag !== undefined && memory.get(flag)!.first === 0
    repeat(s.rounds, count && evaluate(count, params), isLast, () => s.body.forEach(run))
  }
}

function runLaunch(
  launch: Launch,
  memory: ReadonlyMap<string, Memory>,
  params: ReadonlyMap<string, number>,
  instructions: Instructions | undefined,
): void {
  const run = compileBody(launch.body)
  const grid = launch.grid.map((e) => evaluate(e, params))
  const [bx, by, bz] = launch.block
  const clusterSize = launch.cluster ?? 1
  let block = 0
  const createThreads = (x: number, y: number, z: number, cluster: Frame[]): Threads => {
    const shared = new Map<string, Memory>()
    const threads: Threads[number][] = []
    for (let tz = 0; tz < bz; tz++)
      for (let ty = 0; ty < by; ty++)
        for (let tx = 0; tx < bx; tx++) {
          const frame: Frame = {
            state: { block, row: tz * by + ty, thread: threads.length, epoch: 0, phase: 0 },
            index: {
              'block.x': x,
              'block.y': y,
              'block.z': z,
              'thread.x': tx,
              'thread.y': ty,
              'thread.z': tz,
            },
            vars: new Map(params),
            memory: new Map(memory),
            shared,
            laneValues: [],
            cluster,
            instructions,
          }
          threads.push({ run: run(frame), frame })
        }
    cluster.push(threads[0]!.frame)
    block++
    return threads
  }
  invariant(grid[0]! % clusterSize === 0, `${launch.name}: ${grid[0]} blocks in clusters of ${clusterSize}`)
  for (let z = 0; z < grid[2]!; z++)
    for (let y = 0; y < grid[1]!; y++)
      for (let x = 0; x < grid[0]!; x += clusterSize) {
        const cluster: Frame[] = []
        lockstep(
          launch.name,
          Array.from({ length: clusterSize }, (_, k) => createThreads(x + k, y, z, cluster)),
        )
      }
}
