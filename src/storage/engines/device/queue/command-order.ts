/** Reordering of commands: independent launches of one kernel become adjacent. */

import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { physicalGrid } from '../../../../backends/grid-folding.ts'
import { getOrAdd } from '../../../../ir/memoize.ts'
import type { ArgValue, Command, Device, DeviceBuffer } from '../../../../runtime/device.ts'
import { type LaunchSpec, THREADS } from '../kernels/kernel-builder.ts'
import { BLOCK, END, type Kernel, type Slot } from './kernel-cache.ts'

/** A launch, or a memset of a buffer (represented by an equivalent launch). */
export interface Pending {
  readonly slot: Slot
  readonly spec: LaunchSpec
  readonly clear: DeviceBuffer | null
}

interface Node {
  readonly command: Pending
  /** Predecessors that have not run yet. */
  unfinished: number
  readonly next: number[]
}

/** Groups of commands in sequence. Commands write disjoint elements of `shared` buffers, so these order nothing. */
export function scheduleCommands(
  commands: readonly Pending[],
  shared: ReadonlySet<DeviceBuffer>,
): Pending[][] {
  const nodes = dependencies(commands, shared)
  const remaining = new Map<Slot, number>()
  for (const { slot } of commands) remaining.set(slot, (remaining.get(slot) ?? 0) + 1)
  const readyCommands = new Map<Slot, number[]>()
  const markReady = (k: number): void => {
    getOrAdd(readyCommands, nodes[k]!.command.slot, () => []).push(k)
  }
  for (let k = 0; k < nodes.length; k++) if (nodes[k]!.unfinished === 0) markReady(k)
  const out: Pending[][] = []
  while (readyCommands.size > 0) {
    // Select the kernel with the largest fraction of its remaining commands ready, so that most of them fuse.
    let best: Slot | null = null
    let bestFraction = -1
    for (const [slot, list] of readyCommands) {
      const fraction = list.length / remaining.get(slot)!
      if (fraction > bestFraction) [best, bestFraction] = [slot, fraction]
      if (fraction === 1) break
    }
    const group = readyCommands.get(best!)!
    readyCommands.delete(best!)
    remaining.set(best!, remaining.get(best!)! - group.length)
    out.push(group.map((k) => nodes[k]!.command))
    for (const k of group) for (const n of nodes[k]!.next) if (--nodes[n]!.unfinished === 0) markReady(n)
  }
  return out
}

interface BufferUsers {
  writer: number
  readers: number[]
}

function dependencies(commands: readonly Pending[], shared: ReadonlySet<DeviceBuffer>): Node[] {
  const nodes: Node[] = []
  const usersByBuffer = new Map<DeviceBuffer, BufferUsers>()
  for (let k = 0; k < commands.length; k++) {
    const command = commands[k]!
    const node: Node = { command, unfinished: 0, next: [] }
    nodes.push(node)
    const addDependency = (n: number): void => {
      if (n < 0 || n === k) return
      nodes[n]!.next.push(k)
      node.unfinished++
    }
    const { columns } = command.spec
    for (const name in columns) {
      const { column, access } = columns[name]!
      const buffer = column.memory
      const users = usersByBuffer.get(buffer)
      // Users of a shared buffer depend on its previous memset, and its next memset depends on them.
      const writes = (access === 'write' || access === 'update') && (!shared.has(buffer) || command.clear)
      if (!users) {
        usersByBuffer.set(buffer, writes ? { writer: k, readers: [] } : { writer: -1, readers: [k] })
        continue
      }
      addDependency(users.writer)
      if (!writes) users.readers.push(k)
      else {
        for (const r of users.readers) addDependency(r)
        users.writer = k
        users.readers = []
      }
    }
  }
  return nodes
}

// Conversion of launches into commands of a device: arguments and grid.

/** One launch of `kernel`, compiled for at least as many launches as `specs`. */
export function commandOf(
  device: Device,
  { module, entry, args }: Kernel,
  specs: readonly LaunchSpec[],
): Command {
  const { shared } = specs[0]!
  const ends: number[] = []
  let threads = 0
  for (const spec of specs) {
    threads += shared ? spec.threads : Math.ceil(spec.threads / BLOCK) * BLOCK
    ends.push(threads)
  }
  if (specs.length === 1) threads = specs[0]!.threads
  const blocks = shared ? threads : Math.ceil(threads / BLOCK)
  const grid =
    device.kind === 'cpu' ? ([1, 1, 1] as const) : physicalGrid([blocks, 1, 1], device.limits.maxGridDim)
  invariant(grid, `${blocks} blocks are more than a grid holds`)
  const values: ArgValue[] = []
  for (const { kind, name, launch: of } of args) {
    // Unused launches of the kernel get no threads.
    const spec = specs[of]
    const column = kind === 'size' ? undefined : (spec ?? specs[0]!).columns[name]!.column
    if (column) values.push(kind === 'buffer' ? column.memory : column.length)
    else if (name === END) values.push(ends[of] ?? threads)
    else if (name === THREADS) values.push(of < 0 ? threads : (spec?.threads ?? 0))
    else {
      const value = (spec ?? specs[0]!).sizes?.[name]
      invariant(value !== undefined, `${specs[0]!.key}: no size ${name}`)
      values.push(value)
    }
  }
  return { kind: 'launch', module, entry, grid, args: values }
}
