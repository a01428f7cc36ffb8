/** The lists that hold unless `defaults: false` is said. Data only. */

/** Never, whoever asks: what ends the machine, changes who one is, or switches this very policy off. */
export const DENY: readonly string[] = [
  'rm -rf /', 'sudo', 'shutdown', 'reboot', 'mkfs', 'dd if=*',
  'sudoedit', 'su', 'doas', 'pkexec', 'run0', 'halt', 'poweroff', 'init 0', 'init 6', 'systemctl poweroff', 'systemctl reboot', 'systemctl halt', 'systemctl kexec', 'systemctl * poweroff.target', 'systemctl * reboot.target', 'systemctl * halt.target', 'loginctl poweroff', 'loginctl reboot', 'telinit 0', 'telinit 6', 'kexec *', 'insmod', 'modprobe', 'rmmod', 'setcap', 'visudo', 'mkfs.*', 'wipefs', 'dd of=/dev/*', '> /dev/sd*', '> /dev/nvme*', '> /dev/disk*',
  'hx', 'harnessx', '*/harnessx/dist/cli.cjs', '*/harnessx/dist/cli.js',
]
/** Only when a person says yes. */
export const ASK: readonly string[] = ['rm *', 'chmod 777 *', '> /etc/*', 'unlink *', 'shred *', 'find * -delete', 'at *', 'batch', 'crontab *', 'chmod 0777 *', 'chmod u+s *', 'chmod g+s *', 'chmod 4755 *', 'chmod 4777 *', 'chmod 6755 *', 'chmod a=rwx *', 'chmod ugo=rwx *', 'chmod a+rwx *', 'chmod ugo+rwx *', 'chmod +rwx *']
