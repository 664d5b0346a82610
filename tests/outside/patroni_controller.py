"""The controller of etcd for Patroni's features, which is put into their `environment.py`: text, since it needs theirs.

etcd has no JSON gateway, wants certificates, and knows its users by them alone.
"""

from typing import Final

CONTROLLER: Final = """\
class Etcd3AioController(AbstractDcsController):

    CERTS = os.environ['ETCD_AIO_CERTS']

    def __init__(self, context):
        super(Etcd3AioController, self).__init__(context)
        os.environ['PATRONI_ETCD3AIO_HOST'] = 'localhost:2379'
        os.environ['PATRONI_ETCD3AIO_CACERT'] = self.CERTS + '/ca.pem'
        os.environ['PATRONI_ETCD3AIO_CERT'] = self.CERTS + '/patroni.pem'
        os.environ['PATRONI_ETCD3AIO_KEY'] = self.CERTS + '/patroni.key'

    def _start(self):
        return psutil.Popen(['etcd', '--data-dir', self._work_directory, '--enable-grpc-gateway=false',
                             '--listen-client-urls=https://127.0.0.1:2379',
                             '--advertise-client-urls=https://localhost:2379',
                             '--client-cert-auth', '--trusted-ca-file=' + self.CERTS + '/ca.pem',
                             '--cert-file=' + self.CERTS + '/server.pem', '--key-file=' + self.CERTS + '/server.key'],
                            stdout=self._log, stderr=subprocess.STDOUT)

    def _is_running(self):
        from etcd_aio import TLS
        from etcd_aio.sync import Client

        tls = TLS(ca=self.CERTS + '/ca.pem', cert=self.CERTS + '/root.pem', key=self.CERTS + '/root.key')
        client = Client('https://localhost:2379', tls=tls, fail_fast=True, timeout=2)
        try:
            if not client.auth.status():
                for name in ('root', 'patroni'):
                    client.auth.user_add(name)
                    client.auth.role_add(name)
                    client.auth.user_grant_role(name, name)
                client.auth.role_grant_permission('patroni', permission='readwrite', prefix='/service/')
                client.auth.enable()
        except Exception:
            client.close()
            return False
        self._client = client
        return True

    def query(self, key, scope='batman', group=None):
        kv = self._client.get(self.path(key, scope, group))
        return kv and kv.text()

    def cleanup_service_tree(self):
        self._client.delete(prefix=self.path(scope=''))


"""
