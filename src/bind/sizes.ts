/** Sizes: given, or read off the shapes of what is bound. Two sources of one size have to agree. */
import { type Diagnostic, fail, SptError } from '../ast/diagnostic.ts'
import type { Tensor } from '../formats/tensor.ts'
import { chainTo } from '../ir/axis.ts'
import { INT_RANGE, isFloat } from '../ir/dtype.ts'
import { evaluate } from '../ir/evaluate.ts'
import { type Expr, freeVars } from '../ir/expr.ts'
import type { Kernel1, Param } from '../ir/stage1.ts'
import { allAxesOf, callerAxesOf, storedAxis } from './axes.ts'

const MAX_SIZE = 2 ** 31 - 1

/** Values of all sizes and scalars that are not measured. */
export function bindParams(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  given: ReadonlyMap<string, number>,
): Map<string, number> {
  const params = new Map<string, number>()
  const from = new Map<string, string>()
  const names = kernel.params.map((p) => p.name)
  for (const [name, value] of given) {
    const p = kernel.params.find((x) => x.name === name)
    if (!p)
      fail({
        code: 'bind/unknown-size',
        message: `kernel ${kernel.name} has no size or scalar ${name}`,
        lookup: { name, candidates: names },
        expected: names.length > 0 ? `one of ${names.join(', ')}` : 'none',
        hint: 'leave it out, or use one of the names',
      })
    params.set(name, checkParam(p, value))
    from.set(name, 'what was given')
  }
  for (const [name, tensor] of tensors)
    dimensions(kernel, name, tensor).forEach((d) => {
      if (d.extent.kind !== 'var' || !names.includes(d.extent.name)) return
      const known = params.get(d.extent.name)
      if (known === undefined) {
        params.set(d.extent.name, d.size)
        from.set(d.extent.name, `dimension ${d.dimension} of ${name}`)
      } else if (known !== d.size)
        fail({
          code: 'bind/size-mismatch',
          message: `size ${d.extent.name} is ${known} by ${from.get(d.extent.name)}, and ${d.size} by dimension ${d.dimension} of ${name}`,
          expected: 'one value for each size',
          hint: `check that ${name} has the shape the kernel declares: [${dimensions(kernel, name, tensor)
            .map((x) => x.axis)
            .join(', ')}]`,
        })
    })
  const missing = kernel.params.filter((p) => !p.measured && !params.has(p.name) && !isWidth(kernel, p))
  if (missing.length > 0) throw new SptError(missing.map((p) => missingParam(kernel, p)))
  checkDimensions(kernel, tensors, params)
  return params
}

/** A bare width that nobody gives is the longest segment of what is bound. */
const isWidth = (kernel: Kernel1, p: Param): boolean =>
  kernel.axes.some((a) => a.kind === 'sparse_fixed' && a.width.kind === 'var' && a.width.name === p.name) &&
  !kernel.axes.some((a) => 'extent' in a && freeVars(a.extent).has(p.name))

function checkParam(p: Param, value: number): number {
  if (p.kind === 'size' && !(Number.isInteger(value) && value >= 0 && value <= MAX_SIZE))
    fail({
      code: 'bind/size-range',
      message: `size ${p.name} is ${value}`,
      expected: `an integer from 0 to ${MAX_SIZE}`,
      hint: 'sizes and positions are 32-bit integers',
    })
  if (isFloat(p.dtype)) return value
  const [lo, hi] = p.dtype === 'bool' ? [0, 1] : INT_RANGE[p.dtype as keyof typeof INT_RANGE]
  if (!Number.isInteger(value) || value < lo || value > hi)
    fail({
      code: 'bind/scalar-range',
      message: `${p.name} is ${value}, which is no ${p.dtype}`,
      expected: `an integer from ${lo} to ${hi}`,
      hint: 'give a value of the declared type',
    })
  return value
}

const missingParam = (kernel: Kernel1, p: Param): Diagnostic => ({
  code: p.kind === 'size' ? 'bind/missing-size' : 'bind/missing-scalar',
  message: `${p.kind} ${p.name} of kernel ${kernel.name} has no value`,
  ...(p.span ? { span: p.span } : {}),
  expected: p.kind === 'size' ? 'a value, or a tensor whose shape gives it' : `a value of type ${p.dtype}`,
  hint: `give ${p.name} a number`,
})

interface Dimension {
  readonly axis: string
  readonly dimension: number
  readonly extent: Expr
  readonly size: number
}

/** The dimensions of a bound tensor with the extents they are declared with. */
function dimensions(kernel: Kernel1, name: string, tensor: Tensor): Dimension[] {
  const axes = allAxesOf(kernel)
  const over = axesOfBinding(kernel, name)
  if (tensor.shape.length !== over.length)
    fail({
      code: 'bind/rank',
      message: `${name} is bound to a tensor of ${tensor.shape.length} dimension(s); it is over [${over.join(', ')}]`,
      expected: `${over.length} dimension(s)`,
      hint: 'bind a tensor with one dimension for each axis',
    })
  return over.map((a, k) => ({
    axis: a,
    dimension: k,
    extent: storedAxis(axes, a).extent,
    size: tensor.shape[k]!,
  }))
}

/** The caller's axes of a bound name: a buffer's, or the chain down to an axis. */
export function axesOfBinding(kernel: Kernel1, name: string): readonly string[] {
  const buffer = kernel.buffers.find((b) => b.name === name)
  if (buffer) return callerAxesOf(kernel, buffer)
  const axes = allAxesOf(kernel)
  const axis = axes.get(name)
  if (axis && axis.kind !== 'fused' && axis.kind !== 'attached' && axis.kind !== 'gathered')
    return chainTo(axes, name)
  const candidates = [...kernel.buffers.map((b) => b.name), ...axes.keys()]
  return fail({
    code: 'bind/unknown-name',
    message: `kernel ${kernel.name} has no buffer or axis ${name}`,
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'bind the name that the kernel declares',
  })
}

function checkDimensions(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
): void {
  for (const [name, tensor] of tensors)
    for (const d of dimensions(kernel, name, tensor)) {
      if ([...freeVars(d.extent)].some((v) => !params.has(v))) continue
      const expected = Math.max(0, evaluate(d.extent, params))
      if (expected !== d.size)
        fail({
          code: 'bind/shape',
          message: `dimension ${d.dimension} of ${name} (axis ${d.axis}) has ${d.size} coordinates; the sizes say ${expected}`,
          expected: `${expected}`,
          hint: `bind a tensor of that shape, or other sizes (${[...freeVars(d.extent)].map((v) => `${v} = ${params.get(v)}`).join(', ')})`,
        })
    }
}
