/**
 * What a terminal would show of a program's output: escape sequences and control characters out, a line that was overprinted with CR only as it stood last.
 * Pure, and linear in the length of the text.
 */
// CSI; OSC, DCS, APC, PM and SOS up to their end; any other escape; C0 and C1 controls but tab, line feed and carriage return.
const INVISIBLE = /\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

export function cleanText(text: string): string {
  const visible = text.replace(INVISIBLE, '')
  return visible.includes('\r') ? visible.split('\n').map(lastPrinted).join('\n') : visible
}

function lastPrinted(line: string): string {
  const end = line.replace(/\r+$/, '')
  return end.slice(end.lastIndexOf('\r') + 1)
}
