/**
 * Reordering of commands such that independent launches of one kernel become adjacent: parts of a tensor are built
 * concurrently by the same kernels.
 */
import type { DeviceBuffer } from '../../../runtime/device.ts'
import type { LaunchSpec } from './column-types.ts'
import type { Slot } from './kernel-cache.ts'

/** A launch, or a memset of a buffer (represented by an equivalent launch). */
export interface Pending {
  readonly slot: Slot
  readonly spec: LaunchSpec
  readonly clear: DeviceBuffer | null
}

interface Node {
  readonly command: Pending
  /** Number of predecessors that have not run yet. */
  waits: number
  readonly next: number[]
}

/** Groups of commands to run in sequence; commands write disjoint elements of the `shared` buffers. */
export function arrange(commands: readonly Pending[], shared: ReadonlySet<DeviceBuffer>): Pending[][] {
  const nodes = dependencies(commands, shared)
  const left = new Map<Slot, number>()
  for (const { slot } of commands) left.set(slot, (left.get(slot) ?? 0) + 1)
  const ready = new Map<Slot, number[]>()
  const isReady = (k: number): void => {
    const { slot } = nodes[k]!.command
    const list = ready.get(slot)
    if (list) list.push(k)
    else ready.set(slot, [k])
  }
  for (let k = 0; k < nodes.length; k++) if (nodes[k]!.waits === 0) isReady(k)
  const out: Pending[][] = []
  while (ready.size > 0) {
    // Take the kind with the fewest remaining commands.
    let best: Slot | null = null
    let share = -1
    for (const [slot, list] of ready) {
      const own = list.length / left.get(slot)!
      if (own > share) [best, share] = [slot, own]
      if (own === 1) break
    }
    const group = ready.get(best!)!
    ready.delete(best!)
    left.set(best!, left.get(best!)! - group.length)
    out.push(group.map((k) => nodes[k]!.command))
    for (const k of group) for (const n of nodes[k]!.next) if (--nodes[n]!.waits === 0) isReady(n)
  }
  return out
}

interface Touched {
  writer: number
  readers: number[]
}

function dependencies(commands: readonly Pending[], shared: ReadonlySet<DeviceBuffer>): Node[] {
  const nodes: Node[] = []
  const memory = new Map<DeviceBuffer, Touched>()
  for (let k = 0; k < commands.length; k++) {
    const command = commands[k]!
    const node: Node = { command, waits: 0, next: [] }
    nodes.push(node)
    const after = (n: number): void => {
      if (n < 0 || n === k) return
      nodes[n]!.next.push(k)
      node.waits++
    }
    const { columns } = command.spec
    for (const name in columns) {
      const { column, access } = columns[name]!
      const buffer = column.memory
      const known = memory.get(buffer)
      // Users of a shared buffer depend on its previous memset, and its next memset depends on them.
      const writes = (access === 'write' || access === 'update') && (!shared.has(buffer) || command.clear)
      if (!known) {
        memory.set(buffer, writes ? { writer: k, readers: [] } : { writer: -1, readers: [k] })
        continue
      }
      after(known.writer)
      if (!writes) known.readers.push(k)
      else {
        for (const r of known.readers) after(r)
        known.writer = k
        known.readers = []
      }
    }
  }
  return nodes
}
