/**
 * An order of commands that brings those of one kernel together which do not depend on each other: parts of a tensor
 * are built side by side, by the same kernels.
 */
import type { DeviceBuffer } from '../../../runtime/device.ts'
import type { LaunchSpec } from './column-types.ts'
import type { Slot } from './kernel-cache.ts'

/** A launch, or what sets a buffer to 0 (as a launch that would do it). */
export interface Pending {
  readonly slot: Slot
  readonly spec: LaunchSpec
  readonly clear: DeviceBuffer | null
}

interface Node {
  readonly command: Pending
  /** How many of those that must run before have not run. */
  waits: number
  readonly next: number[]
}

/** Groups that run one after the other; `shared` are written at different elements by whoever writes them. */
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
    // Those of whose kind the least is still to come.
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
      // Those who share it wait for what cleared it before, and what clears it next waits for them.
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
