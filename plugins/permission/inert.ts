/**
 * Programs whose words are names and texts, never a command: `grep sudo notes.md` runs no sudo. Of every other program that nobody listed, any word may be one. Data only.
 * Also here: those that have a reading of their own (interpreters), and those whose commands run elsewhere (containers).
 */
import { INTERPRETERS } from './interpreters.js'

const INERT = new Set([
  'echo', 'printf', 'cd', 'pushd', 'popd', 'test', '[', 'true', 'false', ':', 'let', 'read', 'return', 'exit', 'export', 'declare', 'typeset', 'local', 'readonly', 'unset', 'set', 'shopt', 'type', 'which', 'whereis', 'whatis', 'apropos', 'man', 'info', 'help', 'alias', 'unalias', 'command',
  'ls', 'exa', 'eza', 'tree', 'cat', 'bat', 'head', 'tail', 'less', 'more', 'wc', 'sort', 'uniq', 'cut', 'tr', 'paste', 'join', 'column', 'fold', 'nl', 'tac', 'rev', 'diff', 'cmp', 'comm', 'patch', 'file', 'stat', 'du', 'df', 'find', 'fd', 'fdfind', 'locate', 'basename', 'dirname', 'realpath', 'readlink', 'expr', 'seq', 'date', 'strings', 'xxd', 'od', 'hexdump',
  'grep', 'egrep', 'fgrep', 'zgrep', 'rg', 'ag', 'ack', 'jq', 'yq', 'sed', 'cp', 'mv', 'rm', 'ln', 'mkdir', 'rmdir', 'touch', 'chmod', 'chown', 'chgrp', 'install', 'tee', 'dd', 'truncate', 'shred', 'unlink', 'rsync', 'tar', 'zip', 'unzip', 'gzip', 'gunzip', 'zcat', 'bzip2', 'xz', 'zstd', '7z', 'md5sum', 'sha1sum', 'sha256sum', 'base64', 'openssl',
  'git', 'gh', 'glab', 'svn', 'hg', 'jj', 'ps', 'pgrep', 'pkill', 'kill', 'killall', 'pidof', 'top', 'lsof', 'id', 'groups', 'getent', 'users', 'who', 'passwd', 'usermod', 'systemctl', 'service', 'journalctl',
  'apt', 'apt-get', 'apt-cache', 'apt-mark', 'dpkg', 'dnf', 'yum', 'rpm', 'pacman', 'apk', 'zypper', 'brew', 'port', 'snap', 'flatpak', 'pip', 'pip3', 'gem', 'npm', 'pnpm', 'yarn', 'bun', 'composer', 'docker', 'podman', 'kubectl', 'helm', 'oc', 'curl', 'wget', 'code', 'nano', 'emacs', 'micro', 'open', 'xdg-open',
])
export const isInert = (name: string): boolean => INERT.has(name) || INTERPRETERS.test(name)
