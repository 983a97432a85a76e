import { basename } from 'node:path'
import { SptFormat } from '../../api/inputs/format-values.ts'
import { chooseFormat } from '../../api/programs/format-lookup.ts'
import { type Diagnostic, failWith, type Source, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import { ADDRESSES, READABLE, readTensor, readTensorFor } from '../../io/index.ts'
import { packagedFormatFiles } from '../../io/package/package.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { compressedBytes, lengthReport } from '../../pictures/format-figures.ts'
import { drawCoords, drawParts } from '../../pictures/picture/index.ts'
import { coordsOfDense } from '../../storage/entries/stored-coords.ts'
import type { CoordTensor, Tensor } from '../../storage/tensor.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { TRUST } from '../arguments/options.ts'
import { type FormatReport, reportJson, reportText } from '../format/format-report.ts'
import { EXIT } from '../output/failure.ts'
import { standardStream } from '../output/outputs.ts'
import { loadFile } from '../scheduled-kernel.ts'

// Formats available on the command line: formats of the package and of files (`--from`).

interface AvailableFormats {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly sources: ReadonlyMap<string, Source>
}

/** A format of a file replaces a format of the same name in the package or in earlier files. */
async function loadFormats(files: readonly string[], call: Call): Promise<AvailableFormats> {
  const formats = new Map<string, AnyFormat>()
  const sources = new Map<string, Source>()
  for (const path of [...packagedFormatFiles(), ...files]) {
    const program = await loadFile(path, call)
    for (const [name, format] of program.formats) formats.set(name, format)
    for (const [name, source] of program.sources ?? []) sources.set(name, source)
  }
  return { formats, sources }
}

/** The format given by a text, as after `as` in a schedule. */
const formatOf = (text: string, { formats }: AvailableFormats): SptFormat => {
  const selected = chooseFormat(text.trim(), [], formats)
  return new SptFormat(selected.format, selected.args)
}

/** Source name of formats typed on the command line. */
const TYPED = 'format'

/** Adds sources to errors of `work`: the files, and the text typed on the command line. */
function withFormatSources<T>(text: string, { sources }: AvailableFormats, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const decorated = new SptError(error.diagnostics.map(withOption))
    decorated.sources = error.sources ?? new Map([...sources, [TYPED, { name: TYPED, text }]])
    throw decorated
  }
}

/** Replaces a hint to import a format, impossible on the command line, by `--from`. */
const withOption = (d: Diagnostic): Diagnostic =>
  /\/unknown-format$/.test(d.code) && (d.span?.source ?? TYPED) === TYPED && d.hint !== undefined
    ? {
        ...d,
        hint: 'formats of a file: --from FILE.spt, also of the package (--from sparsetile/kernels/NAME.spt)',
      }
    : d

export const format: CommandSpec = {
  name: 'format',
  args: '[NAME=]FILE [LIST=FILE…]',
  count: [1, Number.POSITIVE_INFINITY],
  summary: 'Show how a tensor is stored in a format',
  options: optionTable`
    --as <FORMAT>  A format, as in a schedule: 'hyb(2, 5)', 'band(1, 1) + csr' (default: the tensor as
      loaded)
    --from <FILE.spt>  [repeats, read]  A program with formats, in addition to the formats of the package
    --svg <PATH>  [write]  Draw the tensor, its parts and their storage
    --json <PATH>  [write]  Write the figures as JSON
    ${TRUST}
  `,
  notes: [
    'For each part: rows with an element, nonzeros, slots of the value array, padding (slots that hold no nonzero),\nand bytes. The proof below the table shows that each element is stored exactly once. Properties marked as checked\nwere checked with this tensor.',
    'Bind the lists and sets of a format after the tensor, for example rows=rows.npy.',
    `Reads ${READABLE.join(' ')}.\n${ADDRESSES}`,
  ],
  examples: [
    "spt format graph.mtx --as 'hyb(2, 5)' --svg graph.svg",
    "spt format A=graph.npz --as 'bsr(16) where (density(16) >= 0.5) + csr'",
    "spt format mesh.mtx rows=r.npy cols=r.npy --as 'vbr(rows, cols)'",
    'spt format mine.mtx --from mine.spt --as mine',
  ],
  async run(call) {
    const [first, ...bindings] = call.args.map(bindingOf)
    const files = filesByName(call, bindings)
    const text = call.one('as')
    if (text === undefined && files.size > 0)
      call.reject('lists and sets are for a format', { hint: 'choose a format with --as' })
    const { name, path } = first!
    const label = name ?? basename(path)
    if (text === undefined) {
      const tensor = dropFill(call, label, toCoords(await readTensorFor(path, 'f64')))
      return writeReport(call, unformattedReport(label, tensor), () => drawCoords(tensor, { name: label }))
    }
    const available = await loadFormats(call.many('from'), call)
    const parsed = withFormatSources(text, available, () => formatOf(text, available))
    const tensor = await readTensorFor(path, 'f64')
    const orderedFormat = withFormatSources(text, available, () => parsed.withOrder(tensor.shape.length))
    checkNames(orderedFormat, files.keys())
    const data = await readFormatData(orderedFormat, files)
    const conversion = withFormatSources(text, available, () => {
      const source = dropFill(call, label, toCoords(tensor))
      const start = performance.now()
      const converted = orderedFormat.convert(source, data)
      return { converted, build: performance.now() - start }
    })
    const { provenance } = orderedFormat
    const report = conversion.converted.describe()
    const zeros = paddingZeros(tensor)
    const formatReport = {
      tensor: label,
      zeros,
      over: orderedFormat.dimensions,
      report,
      build: conversion.build,
      provenance,
    }
    return writeReport(call, formatReport, () => drawParts(conversion.converted.stored, { name: label }))
  },
}

async function writeReport(call: Call, report: FormatReport, draw: () => string): Promise<number> {
  const outputs = [
    ['svg', draw],
    ['json', () => reportJson(report)],
  ] as const
  for (const [option, render] of outputs) {
    const path = call.one(option)
    if (path === undefined) continue
    const text = render()
    await call.write(path, text)
    if (standardStream(path) === null) call.io.err(`wrote ${escapeLine(path)}\n`)
  }
  call.io.out(reportText(report))
  return EXIT.ok
}

interface Binding {
  readonly name: string | null
  readonly path: string
}

function bindingOf(text: string): Binding {
  const match = /^([A-Za-z_]\w*)=(.+)$/s.exec(text)
  return match ? { name: match[1]!, path: match[2]! } : { name: null, path: text }
}

function filesByName(call: Call, bindings: readonly Binding[]): Map<string, string> {
  const out = new Map<string, string>()
  for (const { name, path } of bindings) {
    if (name === null)
      call.reject(`there is no place for ${path}`, { expected: 'NAME=FILE for a list or a set' })
    else if (out.has(name)) call.reject(`${name} is given twice`, { expected: 'one file' })
    else out.set(name, path)
  }
  return out
}

/** @throws SptError `format/unknown-data` */
function checkNames(format: SptFormat, names: Iterable<string>): void {
  const candidates = format.inputs.map((g) => g.name)
  for (const name of names)
    if (!candidates.includes(name))
      failWith('format/unknown-data', `${format.text} takes no list and no set ${name}`, {
        lookup: { name, candidates },
        ...(candidates.length > 0 && { expected: candidates.join(', ') }),
      })
}

async function readFormatData(
  format: SptFormat,
  files: ReadonlyMap<string, string>,
): Promise<Record<string, Tensor>> {
  const out: [string, Tensor][] = []
  for (const { name, kind } of format.inputs) {
    const path = files.get(name)
    if (path !== undefined) out.push([name, await readTensor(path, kind === 'list' ? { dtype: 'i32' } : {})])
  }
  return Object.fromEntries(out)
}

/** Converts a tensor read from a file to coordinates; zeros of dense arrays are dropped. */
function toCoords(tensor: Tensor): CoordTensor {
  if (tensor.kind === 'dense') return coordsOfDense(tensor)
  if (tensor.kind === 'coords') return tensor
  return failWith('format/stored', 'the file holds arrays in storage order', { expected: 'coordinates' })
}

/** Removes the fill value with a note: it is a property of a kernel's buffer, not of a format. */
function dropFill(call: Call, label: string, { fill, ...tensor }: CoordTensor): CoordTensor {
  if (fill !== undefined)
    call.io.err(
      `note: elements that ${escapeLine(label)} does not store are ${fill}: bind the tensor to a buffer declared with fill ${fill}\n`,
    )
  return tensor
}

const paddingZeros = (tensor: Tensor): number => (tensor.kind === 'coords' ? (tensor.padding ?? 0) : 0)

function unformattedReport(label: string, tensor: CoordTensor): FormatReport {
  const { shape, coords, dtype } = tensor
  const stored = coords[0]?.length ?? 0
  return {
    tensor: label,
    zeros: paddingZeros(tensor),
    over: null,
    report: {
      shape,
      dtype,
      stored,
      lengths: shape.map((extent, d) => lengthReport(coords[d]!, extent)),
      compressedBytes: compressedBytes(shape, stored, dtype),
    },
    build: null,
    provenance: null,
  }
}
