/** Which resident tensors a kernel can be bound to. */
import { fail } from '../ast/diagnostic.ts'
import type { Instance } from '../ir/format.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, callerTensor, isStructured } from '../run/bind/caller-tensors.ts'
import type { Bound } from '../run/bind/index.ts'
import {
  type Column,
  checkNotFreed,
  type DevicePart,
  type Resident,
  type ResidentParts,
} from '../storage/engines/device/index.ts'
import { expectArgument, isRecord } from './argument-checks.ts'
import type { CompiledKernel } from './compiled.ts'

/** @throws SptError `api/argument`, `device/freed` */
export function checkResident(tensor: Resident, what = 'a resident tensor'): void {
  const holds = isRecord(tensor) && Array.isArray(tensor.shape) && isRecord(tensor.queue)
  expectArgument(holds, what, tensor, 'what resident or a conversion gives')
  checkNotFreed(tensor)
}

/** @throws SptError `convert/other-format`, `convert/dtype`, `device/freed` */
export function checkFormat(
  compiled: CompiledKernel,
  name: string,
  tensor: ResidentParts,
  to: Instance,
): void {
  if (tensor.instance !== to)
    fail({
      code: 'convert/other-format',
      message: `${name} is resident in ${tensor.instance.text}, not in the kernel's own ${to.text}`,
      expected: 'a tensor that was converted to formatOf(kernel, name)',
      hint: 'the same text instantiated elsewhere has other names',
    })
  checkNotFreed(tensor)
  const buffer = compiled.compilation.source.buffers.find((b) => b.name === name)
  if (buffer && buffer.dtype !== tensor.dtype)
    fail({
      code: 'convert/dtype',
      message: `${name} is resident as ${tensor.dtype}; the kernel declares ${buffer.dtype}`,
      expected: buffer.dtype,
      hint: 'convert the values before they are uploaded',
    })
}

/**
 * The structure of a resident tensor is the device's alone: nothing that is bound from the host can have it, or add to it.
 * @throws SptError `convert/shared`
 */
export function checkShared(kernel: Kernel1, names: readonly string[], bound: Bound): void {
  const axes = allAxesOf(kernel)
  for (const name of names) {
    const structured = callerTensor(kernel, name)?.axes.filter((a) => isStructured(axes, a)) ?? []
    const other = bound
      .sources()
      .find((s) => !names.includes(s.name) && s.axes.some((a) => structured.includes(a)))
    if (other)
      fail({
        code: 'convert/shared',
        message: `${other.name} is bound from the host, and has the structure of ${name}, which is resident`,
        expected: `${other.name} resident in the same format, with the same coordinates`,
        hint: `bring ${other.name} to the device too (convertFor), or bind ${name} from the host (prepare)`,
      })
  }
}

/**
 * Tensors over the same axes have one structure, of which the kernel gets one set of arrays. They are only looked at
 * where there are two.
 * @throws SptError `convert/shared`
 */
export async function checkAgree(
  tensors: Readonly<Record<string, ResidentParts>>,
  placed: readonly { readonly tensor: string; readonly part: DevicePart }[],
): Promise<void> {
  const known = new Map<string, { readonly tensor: string; readonly column: Column }>()
  for (const { tensor, part } of placed)
    for (const [name, column] of columnsOf(part)) {
      const first = known.get(name)
      if (!first) known.set(name, { tensor, column })
      else if (!(await equal(tensors[tensor]!, first.column, column)))
        fail({
          code: 'convert/shared',
          message: `${first.tensor} and ${tensor} have one structure in the kernel, and other coordinates`,
          expected: 'the same coordinates, in the same parts',
          hint: 'give both all coordinates that either has, or bind them from the host (prepare), where they are united',
        })
    }
}

/** Arrays that tell positions, by what they belong to. */
function columnsOf({ levels, tables }: DevicePart): [name: string, column: Column][] {
  const out: [string, Column][] = []
  for (const [axis, level] of levels)
    for (const kind of ['indptr', 'indices', 'mask'] as const) {
      const column = level[kind]
      if (column) out.push([`${kind} of ${axis}`, column])
    }
  for (const [name, column] of tables) out.push([name, column])
  return out
}

async function equal({ queue }: ResidentParts, a: Column, b: Column): Promise<boolean> {
  if (a === b) return true
  if (a.length !== b.length) return false
  const [x, y] = [await queue.download(a), await queue.download(b)]
  return x.every((value, k) => value === y[k])
}
