/**
 * Rows that are gathered, multiplied by the matrix of their group and added up: relational layers, sparse convolutions, and
 * tokens of experts, against PyTorch.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DTYPE_BYTES } from '../../../src/ir/values/dtype.ts'
import { dense } from '../../../src/node.ts'
import type { GroupKind } from '../../families/groups.ts'
import { entryOf, type GroupCase, type PythonResult, pythonPeers } from '../../peers/python.ts'
import { fieldOf } from '../candidates.ts'
import { compete } from '../case.ts'
import { floor, type Least } from '../ceilings.ts'
import { bindFirst, checkProduct, ours, withTypes } from '../contestants.ts'
import { axesOf, inputs } from '../declared.ts'
import { ExpectedGroups, type Layer, normalsOf, type Type, Weights } from '../expected-groups.ts'
import { Formats } from '../formats.ts'
import { describeGroups, type Groups, groupSources, pairsOf, tensorOf } from '../groups.ts'
import type { Session } from '../session.ts'

export interface Grouped {
  readonly suite: string
  readonly kind: GroupKind
  readonly layers: readonly Layer[]
}

const layer = (inputs: number, outputs: number, type: Type): Layer => ({ inputs, outputs, type })

export const GROUPED: readonly Grouped[] = [
  {
    suite: 'relational',
    kind: 'relations',
    layers: [layer(32, 32, 'f32'), layer(32, 32, 'f16'), layer(32, 32, 'bf16')],
  },
  {
    suite: 'sparse-convolution',
    kind: 'offsets',
    layers: [
      layer(64, 64, 'f32'),
      layer(64, 64, 'f16'),
      layer(64, 64, 'bf16'),
      layer(128, 128, 'f16'),
      layer(128, 128, 'bf16'),
    ],
  },
  { suite: 'grouped-product', kind: 'experts', layers: [layer(1024, 4096, 'f16')] },
]

const atOf = ({ inputs, outputs, type }: Layer): string => `${inputs} → ${outputs}, ${type}`
const idOf = (G: Groups, l: Layer): string => `${G.name} ${atOf(l)}`

/** All groups that were asked for with all layers of a suite. */
export const overGroups =
  (g: Grouped) =>
  async (s: Session): Promise<void> => {
    const { data, matrices, quick } = s.options
    const { found, missing } = groupSources(g.kind, data, matrices, quick)
    if (missing.length > 0) s.say(`not in ${data}: ${missing.join(', ')}`)
    const weights = remembered()
    for (const source of found) {
      const layers = g.layers.filter((l) => !s.has(g.suite, source.name, atOf(l)))
      if (layers.length === 0) continue
      if (s.late()) {
        s.leave(source.name)
        continue
      }
      // One after the other: what there is no time for costs the others nothing.
      const G = await source.read()
      const python = await peers(s, G, layers)
      s.say(describeGroups(G))
      const formats = new Formats()
      try {
        for (const l of layers)
          if (s.late()) s.leave(`${G.name} ${atOf(l)}`)
          else await one(s, g.suite, G, weights(G.groups, l), formats, python)
      } finally {
        await formats.free()
      }
    }
  }

/** Matrices that were needed last: experts have gigabytes of them, and the same ones whatever the routing is. */
function remembered(): (groups: number, layer: Layer) => Weights {
  let last: { readonly key: string; readonly weights: Weights } | undefined
  return (groups, l) => {
    const key = `${groups} × ${atOf(l)}`
    if (last?.key !== key) last = { key, weights: new Weights(groups, l, Date.now() & 0xffff) }
    return last.weights
  }
}

/** All layers of a file in one process: it takes seconds to start. */
const peers = (s: Session, G: Groups, layers: readonly Layer[]): Promise<readonly PythonResult[]> =>
  pythonPeers('grouped.py', s, (folder): readonly GroupCase[] => {
    const file = join(folder, 'groups')
    for (const [d, part] of ['groups', 'rows', 'columns'].entries())
      writeFileSync(`${file}-${part}`, G.coords[d]!)
    writeFileSync(`${file}-values`, G.values)
    const { kind, groups, rows, columns } = G
    return layers.map((l) => ({ id: idOf(G, l), file, kind, groups, rows, columns, ...l }))
  })

async function one(
  s: Session,
  suite: string,
  G: Groups,
  weights: Weights,
  formats: Formats,
  python: readonly PythonResult[],
): Promise<void> {
  const { layer: l, values: W } = weights
  const field = fieldOf(`${suite}-${l.type}`, s.options.schedules, { n: l.outputs })
  const device = await s.cuda()
  const X = normalsOf(l.type, G.columns * l.inputs, Date.now() & 0xffff)
  const expected = new ExpectedGroups(G, X, weights)
  const factors = [dense([G.columns, l.inputs], X, l.type), dense([G.groups, l.inputs, l.outputs], W, l.type)]
  const entries = await compete(
    field.candidates.map((c) =>
      ours(
        c.text,
        () =>
          bindFirst(
            device,
            c,
            formats,
            ({ source }) => tensorOf(G, axesOf(source, inputs(source)[0]!).length),
            factors,
          ),
        (run) => checkProduct(run, expected),
        withTypes,
      ),
    ),
    field.standard,
    s,
  )
  const least = leastOf(G, l)
  await s.done({
    suite,
    data: G.name,
    at: atOf(l),
    entries: [...entries, ...python.filter((r) => r.id === idOf(G, l)).map(entryOf)],
    checked: expected.checked,
    // Matrix units make a product of f32 out of three.
    floor: !s.ceilings
      ? null
      : l.type === 'f32'
        ? floor(s.ceilings, { ...least, flops: 3 * least.flops }, 'tf32')
        : floor(s.ceilings, least, 'f16'),
    flops: least.flops,
    standard: field.standard,
  })
}

/** Every pair with its value, both factors and the result once. */
function leastOf(G: Groups, { inputs, outputs, type }: Layer): Least {
  const factors = DTYPE_BYTES[type] * (G.columns * inputs + G.groups * inputs * outputs)
  return {
    flops: 2 * pairsOf(G) * inputs * outputs,
    bytes: 12 * pairsOf(G) + factors + 4 * G.rows * outputs,
  }
}
