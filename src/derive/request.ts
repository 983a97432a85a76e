/** Requests of gradients, and their checks against the kernel. */
import { failAt, type Span } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../ir/coordinates/stage1-tree.ts'
import { isFloat, isHalf } from '../ir/values/dtype.ts'

/** A tensor or a scalar parameter, with its place in a text. */
export interface Named {
  readonly name: string
  readonly span?: Span | undefined
}

/** A gradient as requested: of the result `by` with respect to `wrt`. */
export interface GradientRequest {
  /** Name of the new kernel. */
  readonly name: string
  readonly by: Named
  /** `dense`: the gradient of a sparse tensor at all coordinates. */
  readonly wrt: readonly (Named & { readonly dense?: boolean })[]
  /** Tensors that are constants. */
  readonly stopping?: readonly Named[]
  /** Temporaries that the backward pass computes again. */
  readonly recomputing?: readonly Named[]
  /** f16 or bf16 temporaries whose gradients are rounded to their type; gradients of temporaries are f32 otherwise. */
  readonly rounding?: readonly Named[]
  readonly span?: Span | undefined
}

/** The tensors of a clause, with their versions: each stands for all of them. */
export const withVersionsOf = (
  list: readonly Named[],
  versions: ReadonlyMap<string, readonly string[]>,
): readonly Named[] =>
  list.flatMap((x) => [x, ...(versions.get(x.name) ?? []).map((name) => ({ ...x, name }))])

/** The tensors of a request, with the copies of a tensor in place of a name that only copies of `repeat` declare. */
export const withCopies = (
  { buffers, params }: Kernel1,
  wrt: GradientRequest['wrt'],
): GradientRequest['wrt'] =>
  wrt.flatMap((x) => {
    if ([...buffers, ...params].some((b) => b.name === x.name)) return x
    const copies = buffers.filter(
      ({ name, role }) =>
        role !== 'local' && name.startsWith(x.name) && /^(_[1-9]\d*)+$/.test(name.slice(x.name.length)),
    )
    return copies.length === 0 ? x : copies.map(({ name }) => ({ ...x, name }))
  })

/** Checks the names of a request. @throws SptError `derive/…` */
export function checkRequest(kernel: Kernel1, request: GradientRequest): void {
  const { by, wrt, stopping = [], recomputing = [], rounding = [], span } = request
  const scalars = kernel.params.filter((p) => p.kind === 'scalar')
  const written = writtenBuffers1(kernel.body)
  const find = (x: Named, among: readonly { readonly name: string; readonly dtype: string }[]) =>
    among.find((b) => b.name === x.name) ??
    failAt('derive/unknown-tensor', x.span ?? span, {
      message: `kernel ${kernel.name} has no tensor ${x.name}`,
      lookup: { name: x.name, candidates: among.map((b) => b.name) },
    })
  for (const x of [by, ...wrt, ...stopping, ...recomputing, ...rounding]) {
    const found = find(x, x === by ? kernel.buffers : [...kernel.buffers, ...scalars])
    if (!isFloat(found.dtype as 'f32'))
      failAt('derive/not-float', x.span ?? span, {
        message: `${x.name} is ${found.dtype}, and has no gradient`,
        expected: 'a floating-point tensor',
      })
  }
  for (const x of rounding) {
    const { dtype } = kernel.buffers.find((b) => b.name === x.name)!
    if (!isHalf(dtype))
      failAt('derive/not-temporary', x.span ?? span, {
        message: `${x.name} is ${dtype}, so its gradient is not rounded`,
        expected: 'a local buffer of f16 or bf16',
      })
  }
  for (const x of [...recomputing, ...rounding])
    if (kernel.buffers.find((b) => b.name === x.name)?.role !== 'local')
      failAt('derive/not-temporary', x.span ?? span, {
        message: `${x.name} is not a temporary of ${kernel.name}`,
        expected: 'a local buffer',
      })
  const result = kernel.buffers.find((b) => b.name === by.name)!
  if (!written.has(result.name) || result.role === 'local')
    failAt('derive/not-output', by.span ?? span, {
      message: `${by.name} is not an output of ${kernel.name}`,
      lookup: {
        name: by.name,
        candidates: kernel.buffers.filter((b) => b.role === 'out').map((b) => b.name),
      },
      expected: 'an output: gradients are those of a result',
    })
  for (const x of wrt)
    if (kernel.buffers.some((b) => b.name === x.name && b.role === 'inout') && written.has(x.name))
      failAt('derive/overwritten', x.span ?? span, {
        message: `${x.name} is updated by ${kernel.name}`,
        hint: 'derive a kernel without the update, and update in a kernel of its own',
      })
  for (const x of stopping)
    if (wrt.some((y) => y.name === x.name))
      failAt('derive/independent', x.span ?? span, {
        message: `${x.name} is requested, and is a constant by stopping (${x.name})`,
        hint: `remove ${x.name} from one of both lists`,
      })
  const repeated = wrt.find((x, k) => wrt.findIndex((y) => y.name === x.name) < k)
  if (repeated || wrt.length === 0)
    failAt('derive/unknown-tensor', repeated?.span ?? span, {
      message: repeated ? `${repeated.name} is requested twice` : 'no tensor is requested',
      expected: 'each tensor once',
    })
}
