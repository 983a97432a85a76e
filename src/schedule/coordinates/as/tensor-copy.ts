/**
 * A second copy of an input for some iterations, which a format then stores in another way: `A as csc for backward`
 * turns the scattering gradient of a sparse product into a product with the columns of A, without atomic updates.
 */
import { isDenseRoot, mapAxis, parentOf, type StoredAxis, sourceName } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  iterationsOf,
  mapBodies1,
  mapExprs1,
  readsIn,
  writtenBuffers1,
} from '../../../ir/coordinates/stage1-tree.ts'
import { type Expr, load } from '../../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import { iterationNamed, refuse } from '../iterator-names.ts'

interface Copied {
  readonly kernel: Kernel1
  /** The name of the copy, or of the tensor if no other iteration reads it. */
  readonly buffer: string
}

/**
 * The kernel with a copy of `buffer`, which only the named iterations use.
 * @throws SptError `schedule/format-copy`, `schedule/unknown-nest`
 */
export function withTensorCopy(
  kernel: Kernel1,
  buffer: Buffer1,
  names: readonly string[],
  unused: (name: string) => string,
): Copied {
  const reject = (message: string, expected: string): never =>
    refuse(kernel, 'schedule/format-copy', { message, expected, hint: 'leave out `for`' })
  if (buffer.role !== 'in')
    reject(`${buffer.name} is written by the kernel`, 'an input: copies are made when data are bound')
  if (kernel.reformats.some((r) => r.buffers.some((b) => b.parts.includes(buffer.name))))
    reject(`${buffer.name} has a format already`, 'the format of the copy before other formats of the tensor')
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const named = names.map((name) => iterationNamed(kernel, name))
  const isRead = (body: readonly Stmt1[]): boolean => readsIn(body).some((l) => l.buffer === buffer.name)
  for (const it of named)
    if (!isRead([it]))
      reject(`iteration ${it.name} does not read ${buffer.name}`, 'iterations that read the tensor')
  const rest = kernel.body.filter((s) => !named.some((it) => it === s))
  if (rest.length + named.length > kernel.body.length)
    reject(`${names.join(', ')} are inside of other iterations`, 'iterations that are not nested')
  const copies = new Map<string, string>()
  for (const a of buffer.axes) if (!isDenseRoot(axes.get(a)!)) copies.set(a, unused(`${a}_copy`))
  const isShared = ({ name, axes: own }: Buffer1): boolean =>
    name !== buffer.name && own.some((a) => copies.has(a))
  if (!isRead(rest) && !kernel.buffers.some(isShared)) return { kernel, buffer: buffer.name }
  const inside = new Set(iterationsOf(named).flatMap((it) => it.iters.map((x) => x.axis)))
  const shared = [
    ...kernel.buffers.filter((b) => isShared(b) && isUsed(b.name, named)),
    ...kernel.axes.filter((a) => inside.has(a.name) && !copies.has(a.name) && copies.has(parentOf(a) ?? '')),
  ]
  if (shared[0])
    reject(
      `${shared[0].name} has the structure of ${buffer.name}`,
      'iterations in which no other tensor has the structure',
    )
  const now = (name: string): string => copies.get(name) ?? name
  const name = unused(`${buffer.name}_copy`)
  const own = (e: Expr): Expr =>
    rewriteExpr(e, (x) =>
      x.kind === 'load' && x.buffer === buffer.name
        ? load(name, x.index.map(own), x.dtype, x.span)
        : undefined,
    )
  const moved = (s: Stmt1): Stmt1 => {
    const inner = mapBodies1(mapExprs1(s, own), (body) => body.map(moved))
    return inner.kind === 'iterate'
      ? { ...inner, iters: inner.iters.map((x) => ({ ...x, axis: now(x.axis) })) }
      : inner
  }
  const made = [...copies.keys()].map((a) => {
    const axis = axes.get(a) as StoredAxis
    return { ...mapAxis(axis, now, (e) => e), copyOf: sourceName(axis) }
  })
  return {
    buffer: name,
    kernel: {
      ...kernel,
      axes: [...kernel.axes, ...made],
      buffers: kernel.buffers.flatMap((b) =>
        b === buffer ? [b, { ...b, name, axes: b.axes.map(now), copyOf: b.name }] : [b],
      ),
      body: kernel.body.map((s) => (named.some((it) => it === s) ? moved(s) : s)),
    },
  }
}

/** True if statements access a tensor. */
const isUsed = (name: string, body: readonly Stmt1[]): boolean =>
  readsIn(body).some((l) => l.buffer === name) || writtenBuffers1(body).has(name)
