import { basename, join } from 'node:path'
import { escapeLine, escapeText } from '../../ast/diagnostics/render.ts'
import { type Chunks, masksMetadata, PRUNED, safetensorsChunks } from '../../io/index.ts'
import { globOf } from '../../prune/options.ts'
import { NORMS } from '../../prune/scores.ts'
import type { LayerReport, Normalise, Pruned, PruneProgress, PruneReport } from '../../prune.ts'
import { prune as pruneLayers, renderMasks } from '../../prune.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { EXIT } from '../output/failure.ts'
import { count, jsonNumber, ms, percent, size, table } from '../output/figures.ts'
import { checkOutFolder, type OutFolder, writeFolder } from '../prune/folder.ts'
import type { Model } from '../prune/model.ts'
import { checkLayerNames, openModel, outputParts, readGivenMasks, readStageMasks } from '../prune/model.ts'
import {
  checkMaskOptions,
  PARAMETER_OPTIONS,
  PATTERN,
  PATTERN_NOTE,
  patternOf,
  pruneWithMasks,
  type SelectedPattern,
} from '../prune/patterns.ts'
import { createPredictor, PREDICT_OPTIONS, type PredictedReport } from '../prune/predict.ts'

// Report of `spt prune` for people.

const MAX_REASONS = 3

const bytes = (r: Pick<LayerReport, 'denseBytes' | 'patternBytes'>): string =>
  `${size(r.denseBytes)} → ${size(r.patternBytes)}`

const expected = ({ predicted }: PredictedReport['layers'][number]): string =>
  predicted ? [predicted.before, predicted.after].map((t) => (t === null ? 'none' : ms(t))).join(' → ') : ''

/** The kernel and the cost model of the times, and the distinct reasons for missing times. */
function timeNotes({ prediction, layers }: PredictedReport): string[] {
  if (!prediction) return []
  const { kernel, device, chip, schedules } = prediction
  const reasons = [...new Set(layers.flatMap((l) => (l.predicted?.reason ? [l.predicted.reason] : [])))]
  const modelNote = chip === null ? '' : `; cost model of ${chip}, for comparisons only`
  const moreReasons =
    reasons.length > MAX_REASONS ? [`no time: ${reasons.length - MAX_REASONS} more reasons, in the JSON`] : []
  const shownReasons = reasons.slice(0, MAX_REASONS).map((w) => `no time: ${escapeLine(w)}`)
  return [
    `predicted time: ${kernel}${schedules.length > 0 ? ` under ${schedules.join(', ')}` : ''} on ${device}, dense weights → kept weights${modelNote}`,
    ...shownReasons,
    ...moreReasons,
  ]
}

function row(r: PredictedReport['layers'][number], times: boolean): string[] {
  return [
    escapeLine(r.name),
    `${count(r.rows)} × ${count(r.cols)}`,
    r.excluded ? 'excluded' : percent(r.sparsity),
    r.excluded ? '' : r.retainedNorm.toFixed(3),
    count(r.keptOutputs),
    r.tiles === null ? '' : count(r.tiles),
    ...(times ? [expected(r)] : []),
    bytes(r),
  ]
}

/** In quotes for a POSIX shell. */
const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A warning for each layer with almost no kept elements, with a remedy. */
export function* sparseLayerWarnings({ layers, sparseLayers, warnBelow }: PruneReport): Generator<string> {
  for (const { name, rows, cols, kept } of layers.filter((l) => sparseLayers.includes(l.name))) {
    const glob = globOf(name)
    const limit = `--limit ${shellWord(`${glob}=${Number((1 - warnBelow).toFixed(4))}`)}`
    yield `warning: layer ${escapeLine(name)} keeps ${count(kept)} of ${count(rows * cols)} elements, less than ${percent(warnBelow)}\n  = hint: ${limit} or --exclude ${shellWord(glob)}\n`
  }
}

function reportText(r: PredictedReport): string {
  const times = r.prediction !== undefined
  const head = ['layer', 'outputs × inputs', 'sparsity', 'norm', 'outputs kept', 'tiles']
  const total = ['total', count(r.elements), percent(r.sparsity), r.retainedNorm.toFixed(3), '', '']
  const lines = table([
    [...head, ...(times ? ['predicted time'] : []), 'bytes, dense → pattern'],
    ...r.layers.map((l) => row(l, times)),
    [...total, ...(times ? [''] : []), bytes(r)],
  ])
  const title = `${r.pattern} for a sparsity of ${percent(r.target)}`
  return `${[title, ...lines, 'norm: ‖W ⊙ mask‖ / ‖W‖', ...timeNotes(r)].join('\n')}\n`
}

const PICTURE = 'report.svg'
const OUTPUT_NAMES = [...Object.values(PRUNED), PICTURE]

export const prune: CommandSpec = {
  name: 'prune',
  args: 'WEIGHTS',
  count: [1, 1],
  summary: 'Prune the weights of a model in a pattern that kernels support',
  options: optionTable`
    ${PATTERN}
    ${PARAMETER_OPTIONS}
    --sparsity <S>  [without masks]  Sparsity over all layers, such as 0.75; not for nm and vnm, where n and
      m determine the sparsity
    --normalise <N>  [without masks]  Score of vectors of different lengths: root (root mean square) or
      length (norm / length) (default: root)
    --gradients <FILE>  [without masks, read]  Gradients of the loss, under the names of the weights: the
      score is |∂L/∂w · w|, not |w|
    --exclude <GLOB>  [without masks, repeats]  Layers that are not pruned, such as *.embeddings.*
    --limit <GLOB=S>  [without masks, repeats]  Maximum sparsity of a layer (default: a layer keeps one
      tile)
    --apriori <S>  [without masks]  Elements that element-wise pruning at this sparsity would prune count as
      0: for early stages, the last sparsity
    --warn-below <SHARE>  Warn about layers with a smaller share of kept elements (default: (1 − S) / 10)
    --after <DIR>  [without masks]  Output folder of an earlier call; the weights pruned by that call count
      as 0
    --masks <FILE>  [read]  Use these masks (.safetensors); masks that do not follow the pattern are
      rejected
    --transposed  Layers are [inputs, outputs], as in Conv1D of GPT-2 and in Flax
    ${PREDICT_OPTIONS}
    --out <DIR>  Write the results into this folder (default: the report alone)
    --json  One JSON object instead of the report
  `,
  notes: [
    PATTERN_NOTE,
    `WEIGHTS: .safetensors, the .safetensors.index.json of several, or .npz. Tensors of floats with two dimensions or more are\nlayers; other tensors are copied. The files in DIR are written together or not at all:\n${OUTPUT_NAMES.join(', ')} (rest: only for tew).`,
  ],
  examples: [
    "spt prune model.safetensors --pattern tw --granularity 128 --sparsity 0.75 --exclude '*embeddings*' --out pruned",
    'spt prune tuned.safetensors --after stage-25 --pattern tew --granularity 128 --delta 0.01 --sparsity 0.5 --out stage-50',
    "spt prune model.npz --pattern bw --rows 32 --cols 32 --sparsity 0.5 --limit 'head*=0.2' --out pruned",
    'spt prune model.safetensors --pattern tw --granularity 128 --masks mine.safetensors --out pruned',
    'spt prune model.safetensors --pattern tw --granularity 128 --sparsity 0.75 --predict kernel.spt --size m=128 --device cpu',
  ],
  async run(call) {
    const selected = patternOf(call)
    checkMaskOptions(call, selected)
    const sparsity = call.number('sparsity')
    const warnBelow = call.decimal('warn-below', 0, 1)
    const apriori = call.number('apriori')
    const normalise = call.choice('normalise', Object.keys(NORMS) as Normalise[])
    const options = {
      pattern: selected.pattern,
      limits: call.numbers('limit', 'S'),
      exclude: call.many('exclude'),
      ...(sparsity !== undefined && { sparsity }),
      ...(apriori !== undefined && { apriori }),
      ...(normalise && { normalise }),
      ...(warnBelow !== undefined && { warnBelow }),
    }
    const predict = await createPredictor(call)
    const out = call.one('out')
    const folder = out === undefined ? null : await checkOutFolder(call, out, OUTPUT_NAMES, inputPaths(call))
    const model = await openModel(call)
    checkLayerNames(call, model)
    const result = await masksFor(call, model, selected, options)
    const report = predict ? await predict(result) : result.report
    if (folder) await write(call, folder, model, { ...result, report })
    call.io.progress?.('')
    for (const encodeText of sparseLayerWarnings(result.report)) call.io.err(encodeText)
    call.io.out(
      call.flag('json')
        ? `${escapeText(JSON.stringify(folder ? { ...report, out: folder.path } : report, jsonNumber))}\n`
        : `${reportText(report)}${folder ? `wrote ${escapeLine(folder.path)}\n` : 'nothing is written: --out DIR\n'}`,
    )
    return EXIT.ok
  },
}

const inputPaths = (call: Call) => [
  ...call.args.map((path) => ({ typed: path, path })),
  ...call.files('read'),
  ...call.many('after').map((path) => ({ typed: `--after ${path}`, path: join(path, PRUNED.masks) })),
]

async function masksFor(
  call: Call,
  model: Model,
  selected: SelectedPattern,
  options: Omit<Parameters<typeof pruneLayers>[1], 'after' | 'onProgress'>,
): Promise<Pruned> {
  const onProgress = ({ pass, layer, done, of }: PruneProgress): void =>
    call.io.progress?.(`${pass}: ${done} of ${of}, ${escapeLine(layer)}`)
  const masksPath = call.one('masks')
  if (masksPath !== undefined) {
    const { warnBelow } = options
    return pruneWithMasks(model.layers, await readGivenMasks(masksPath, model), selected, {
      warnBelow,
      onProgress,
    })
  }
  const stage = call.one('after')
  const previousMasks = stage === undefined ? undefined : await readStageMasks(stage, model)
  return pruneLayers(model.layers, { ...options, ...(previousMasks && { previousMasks }), onProgress })
}

async function write(
  call: Call,
  folder: OutFolder,
  model: Model,
  result: Omit<Pruned, 'report'> & { readonly report: PredictedReport },
): Promise<void> {
  const { report, masks, rest } = result
  const parts = outputParts(model, result)
  const title = `${basename(model.weights.name)} in ${report.pattern}, ${percent(report.sparsity)}`
  const metadata = new Map([
    ...masksMetadata(model.weights),
    ['pattern', report.pattern],
    ['sparsity', String(report.sparsity)],
  ])
  const encodeText = (render: () => string) => () => [new TextEncoder().encode(render())]
  const files = new Map<string, () => Chunks>([
    ...[...parts].map(
      ([name, list]) =>
        [
          name,
          () => {
            call.io.progress?.(`writing ${name}`)
            return safetensorsChunks(list, name === PRUNED.weights ? model.weights.metadata : metadata)
          },
        ] as const,
    ),
    [PRUNED.report, encodeText(() => `${JSON.stringify(report, jsonNumber, 2)}\n`)],
    [
      PICTURE,
      encodeText(() => renderMasks({ shapes: model.layers.shapes, masks, ...(rest && { rest }) }, title)),
    ],
  ])
  await writeFolder(folder, files)
}
