/** Checks of resident tensors that are bound to a kernel. */

import { changesFill } from '../../analysis/sparsity/updated-fill.ts'
import { byName } from '../../ast/by-name.ts'
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Level } from '../../columns/stored-level.ts'
import { arraysOfLevel, withArrays } from '../../columns/stored-level.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { sameData } from '../../ir/expressions/structural-equality.ts'
import type { Instance } from '../../ir/formats/format.ts'
import { allAxesOf, callerTensor, isStructured } from '../../run/bind/bind-plan.ts'
import { bindingOf } from '../../run/bind/binding-names.ts'
import { givenOperands } from '../../run/bind/format-inputs.ts'
import { RARE_INPUTS } from '../../run/bind/rare-inputs.ts'
import { tensorOf } from '../../run/bind/results/gather-results.ts'
import { originOf } from '../../schedule/coordinates/as/name-collisions.ts'
import { padsWithFill } from '../../schedule/coordinates/legality/padding.ts'
import { checkOrder } from '../../storage/convert.ts'
import type { Column, DevicePart, ResidentParts } from '../../storage/engines/device/index.ts'
import { checkNotFreed } from '../../storage/engines/device/index.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import { DenseOnDevice, listTensor, type Tensor } from '../../storage/tensor.ts'
import { checkTensor, expectArgument, expectInt32s, expectOptions } from '../inputs/argument-checks.ts'

/**
 * Checks the arguments of a format for a conversion on a device, like those on the host. Extents follow from the tensor's shape. Throws
 * SptError `api/argument`, `bind/…`, `format/unknown-name` (a missing size).
 */
export function checkedOperands(
  to: Instance,
  shape: readonly number[],
  given: FormatOperands,
): FormatOperands {
  checkOrder(shape, to)
  for (const kind of ['list', 'set'] as const) {
    const taken = to.given.flatMap((g) => (g.kind === kind ? [g.name] : []))
    expectOptions(`the ${kind}s of ${to.text}`, Object.fromEntries(given[`${kind}s`]), taken)
  }
  const over = to.over.map((a) => a.name)
  expectOptions(`the axes of ${to.text}`, Object.fromEntries(given.extents), over)
  const names = to.over.map(({ extent }) => (extent.kind === 'var' ? extent.name : undefined))
  const sizes = withShape(given.sizes, shape, names)
  const extents = withShape(given.extents, shape, over)
  const operands = givenOperands(
    { instance: to, sizes, extents, rare: RARE_INPUTS },
    (name, kind): Tensor | undefined => {
      const own: unknown = given[`${kind}s`].get(name)
      if (own === undefined) return undefined
      if (kind === 'list') {
        expectInt32s(`the list ${name}`, own)
        return listTensor(own)
      }
      const columns = `one Int32Array of coordinates for each of ${over.join(', ')}`
      expectArgument(Array.isArray(own) && own.length === shape.length, `the set ${name}`, own, columns)
      const set: unknown = { kind: 'coords', shape, coords: own, values: null, dtype: 'f32' }
      checkTensor(name, set)
      return set
    },
  )
  return { ...given, sizes, extents, ...operands }
}

/**
 * Returns the given values by name, with those that the shape determines. Throws SptError `bind/size-mismatch` if they, or two dimensions,
 * disagree.
 */
function withShape(
  given: ReadonlyMap<string, number>,
  shape: readonly number[],
  names: readonly (string | undefined)[],
): Map<string, number> {
  const all = new Map(given)
  names.forEach((name, k) => {
    if (name === undefined) return
    const known = all.get(name) ?? shape[k]!
    if (known !== shape[k])
      failAs('bind/size-mismatch', {
        message: `${name} is ${known} by ${given.has(name) ? 'the given size' : 'another dimension'}, and ${shape[k]} by dimension ${k} of the tensor`,
        expected: 'a value for each size',
        hint: `leave ${name} out, because the shape determines the size, or check the shape [${shape.join(', ')}]`,
      })
    all.set(name, known)
  })
  return all
}

/**
 * Returns the only `as` step that stores a tensor. Throws SptError `convert/no-format` if there is not exactly one, `bind/unknown-name`.
 */
export function reformatOf(kernel: Kernel1, tensor: string) {
  const own = kernel.reformats.filter((r) => r.buffers.some((b) => originOf(kernel, b.name) === tensor))
  const parts = own[0]?.buffers.find((b) => b.name === tensor)?.parts
  if (own.length === 1 && parts) return { reformat: own[0]!, parts }
  tensorOf(kernel, tensor)
  return failAs('convert/no-format', {
    message: `${kernel.name} stores ${tensor} in its declared format, or converts the tensor more than once`,
    expected: 'a schedule with exactly one step `as` for this tensor',
    hint: `a schedule with \`${tensor} as csr\` takes the tensor from the device; the declared format is bound from the host (bind)`,
  })
}

/**
 * Throws SptError `convert/other-format`, `convert/dtype`, `run/resident` or `device/freed` unless the resident tensor matches the kernel's format, type
 * and fill value.
 */
export function checkFormat(kernel: Kernel1, source: Kernel1, name: string, tensor: ResidentParts): void {
  const { reformat } = reformatOf(kernel, name)
  const to = reformat.instance
  if (tensor.instance !== to && !sameData(tensor.instance, to))
    failAs('convert/other-format', {
      message: `${name} is resident in ${tensor.instance.text}, not in the kernel's own ${to.text}`,
      expected: 'a tensor in the same format, over axes of the same names and extents',
      hint: `convert the tensor: convertForKernel(kernel, '${name}', parts)`,
    })
  checkNotFreed(tensor)
  const buffer = source.buffers.find((b) => b.name === name)
  const padded = to.parts.find((p) => p.instance.mask === undefined && padsWithFill(p.instance, to))
  const alike = new Set(reformat.buffers.map((b) => originOf(kernel, b.name)))
  if (padded && buffer && changesFill(source, buffer, alike))
    failAs('run/resident', {
      message: `${source.name} updates ${name} in ${padded.instance.text}, also at coordinates that ${name} does not have, and other kernels would read the values there`,
      expected:
        'a format that stores the elements only, or a format with a mask, for an updated tensor that kernels share',
      hint: `store ${name} as csr, or bind ${name} from the host (bind)`,
    })
  if (buffer && buffer.dtype !== tensor.dtype)
    failWith('convert/dtype', `${name} is resident as ${tensor.dtype}; the kernel declares ${buffer.dtype}`, {
      expected: buffer.dtype,
      hint: `a list of numbers is f64: upload the result of coords(shape, columns, list, '${buffer.dtype}')`,
    })
  const fill = buffer?.fill ?? 0
  if (!Object.is(tensor.fill, fill))
    failAs('convert/other-format', {
      message: `${name} is resident with the fill value ${tensor.fill}, and ${source.name} declares ${fill}`,
      expected: `${fill} where nothing is stored`,
      hint: 'convertForKernel takes the fill value of the kernel; convert takes the value as the last argument',
    })
}

/**
 * Checks that tensors were converted with the lists that are bound, because these determine the numbers of segments. Throws SptError
 * `convert/other-format`.
 */
export function checkSameLists(
  tensors: Readonly<Record<string, ResidentParts>>,
  bound: Readonly<Record<string, Tensor>>,
): void {
  for (const [name, { instance, given }] of Object.entries(tensors))
    for (const [list, cuts] of given.lists) {
      const now = bound[list]?.values
      if (!now || (now.length === cuts.length && cuts.every((x, k) => x === now[k]))) continue
      failAs('convert/other-format', {
        message: `${name} is resident in ${instance.text} with another list ${list} than the bound list`,
        expected: 'the list of the conversion',
        hint: `convert ${name} again, or bind that list`,
      })
    }
}

/**
 * Checks that no tensor bound from the host shares the structure of a resident tensor, because that structure exists on the device only.
 * Throws SptError `convert/shared`, `bind/unknown-name`.
 */
export function checkShared(
  kernel: Kernel1,
  names: readonly string[],
  bound: Readonly<Record<string, Tensor>>,
): void {
  const axes = allAxesOf(kernel)
  for (const name of names) {
    const structured = callerTensor(kernel, name)?.axes.filter((a) => isStructured(axes, a)) ?? []
    const together = reformatOf(kernel, name).reformat.buffers.map((b) => b.name)
    for (const [other, tensor] of Object.entries(bound)) {
      const b = bindingOf(kernel, other, tensor)
      const own = b.kind === 'tensor' || b.kind === 'part' ? b.tensor : undefined
      if (names.includes(own?.name ?? '')) continue
      const over = own?.axes ?? (b.kind === 'axis' ? b.chain : [])
      if (!together.includes(own?.name ?? '') && !over.some((a) => structured.includes(a))) continue
      failAs('convert/shared', {
        message: `${other} ${tensor instanceof DenseOnDevice ? 'is a dense tensor' : 'is bound from the host'}, and has the structure of ${name}, which is resident`,
        expected: `${other} resident in the same format, with the same coordinates`,
        hint: `also upload ${other} (convertForKernel), or bind ${name} from the host (bind)`,
      })
    }
  }
}

/**
 * Returns the given sizes, and those with which resident tensors were converted or that were measured then. Throws SptError
 * `convert/other-format` if two of them differ.
 */
export function sizesWith(
  kernel: Kernel1,
  tensors: Readonly<Record<string, ResidentParts>>,
  given: Readonly<Record<string, number | boolean>>,
): Record<string, number | boolean> {
  const sizes = byName(Object.entries(given))
  const from = new Map<string, string>()
  const holder = (size: string, name: string): string =>
    from.get(size) === name ? 'another part of it' : (from.get(size) ?? 'what is given')
  for (const [name, { instance, given: own, parts }] of Object.entries(tensors)) {
    const over = new Set(instance.over.flatMap((a) => (a.extent.kind === 'var' ? [a.extent.name] : [])))
    for (const [size, value] of [...own.sizes, ...parts.flatMap((p) => [...p.measured])]) {
      // Extents follow from the shapes.
      if (over.has(size) || !kernel.params.some((p) => p.name === size && p.kind === 'size')) continue
      const now = sizes[size]
      if (now !== undefined && now !== value)
        failAs('convert/other-format', {
          message: `${name} is resident in ${instance.text} with ${size} = ${value}, and ${holder(size, name)} has ${size} = ${now}`,
          expected: `one value of ${size}`,
          hint: `give ${size} where tensors are converted (convertForKernel(…, { sizes })), the same for every tensor`,
        })
      sizes[size] = value
      from.set(size, name)
    }
  }
  return sizes
}

/** Levels of all parts by axis, without their arrays. Throws SptError `convert/shared` if two tensors have a level of different size. */
export function agreedLevels(placed: readonly Placed[]): ReadonlyMap<string, Level> {
  const levels = new Map<string, Level>()
  const from = new Map<string, string>()
  for (const { tensor, part } of placed)
    for (const [name, level] of part.storage.levels) {
      const known = levels.get(name)
      const same =
        known?.positions === level.positions && known.extent === level.extent && known.width === level.width
      if (known && !same) otherStructure(from.get(name)!, tensor)
      levels.set(name, withArrays(level))
      from.set(name, tensor)
    }
  return levels
}

interface Placed {
  readonly tensor: string
  readonly part: DevicePart
}

const otherStructure = (first: string, second: string): never =>
  failAs('convert/shared', {
    message: `${first} and ${second} share a sparse structure in the kernel, but have different coordinates`,
    expected: 'the same coordinates, in the same parts',
    hint: 'give both tensors the coordinates of either, or bind both from the host (bind), which unites the coordinates',
  })

/**
 * Checks that tensors over the same axes have equal index arrays, because the kernel gets one set. Downloads them only if there are two.
 * Throws SptError `convert/shared`.
 */
export async function checkAgree(
  tensors: Readonly<Record<string, ResidentParts>>,
  placed: readonly Placed[],
): Promise<void> {
  const known = new Map<string, { readonly tensor: string; readonly column: Column }>()
  for (const { tensor, part } of placed)
    for (const [name, column] of columnsOf(part)) {
      const first = known.get(name)
      if (!first) known.set(name, { tensor, column })
      else if (!(await equal(tensors[tensor]!, first.column, column))) otherStructure(first.tensor, tensor)
    }
}

/** Arrays that determine positions, by kind and axis or by table. */
function columnsOf({ storage: { levels }, tables }: DevicePart): [name: string, column: Column][] {
  const out: [string, Column][] = []
  for (const [axis, level] of levels)
    for (const [array, column] of arraysOfLevel(level)) out.push([`${array} of ${axis}`, column])
  for (const [name, column] of tables) out.push([name, column])
  return out
}

async function equal({ queue }: ResidentParts, a: Column, b: Column): Promise<boolean> {
  if (a === b) return true
  if (a.length !== b.length) return false
  const [x, y] = [await queue.download(a), await queue.download(b)]
  return x.every((value, k) => value === y[k])
}
