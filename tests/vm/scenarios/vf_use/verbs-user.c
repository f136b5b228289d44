/*
 * verbs-user DEVICE [thread]: a process that uses an RDMA device as an MPI job does. By
 * /dev/infiniband/uverbsN it makes a queue pair of type RC, connects it, to itself,
 * says "connected" and waits to be ended. DEVICE is of mlx5. With `thread` all that is done
 * by a thread that ends, as that of a library which sets up connections in the background.
 *
 * It asks the kernel itself, and needs no library: include/uapi/rdma/ib_user_verbs.h
 * and mlx5-abi.h have what is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* enum ib_qp_attr_mask, ib_qp_type, ib_qp_state (include/rdma/ib_verbs.h). */
enum { STATE = 1 << 0, ACCESS = 1 << 3, PKEY = 1 << 4, PORT = 1 << 5, AV = 1 << 7,
       MTU = 1 << 8, TIMEOUT = 1 << 9, RETRY = 1 << 10, RNR_RETRY = 1 << 11,
       RQ_PSN = 1 << 12, RD_ATOMIC = 1 << 13, RNR_TIMER = 1 << 15, SQ_PSN = 1 << 16,
       DEST_RD_ATOMIC = 1 << 17, DEST_QPN = 1 << 20 };
enum { RC = 2 };
enum { INIT = 1, RTR, RTS };

static int device;
static uint8_t answer[1024];

/* A request is a header, the common part, and the driver's. */
static void ask(const char *what, uint32_t command, void *common, size_t common_size,
		const void *own, size_t own_size)
{
	uint8_t request[1024] = { 0 };
	struct ib_uverbs_cmd_hdr *header = (void *)request;
	size_t size = sizeof(*header) + common_size + own_size;

	header->command = command;
	header->in_words = size / 4;
	memcpy(request + sizeof(*header), common, common_size);
	if (own_size)
		memcpy(request + sizeof(*header) + common_size, own, own_size);
	if (command != IB_USER_VERBS_CMD_MODIFY_QP) {
		uint64_t to = (uintptr_t)answer;

		header->out_words = sizeof(answer) / 4;
		memcpy(request + sizeof(*header), &to, sizeof(to));
	}
	if (write(device, request, size) != (ssize_t)size) {
		perror(what);
		exit(1);
	}
}

static void modify(struct ib_uverbs_modify_qp *qp, uint8_t state, uint32_t mask)
{
	qp->qp_state = state;
	qp->attr_mask = STATE | mask;
	ask("modify QP", IB_USER_VERBS_CMD_MODIFY_QP, qp, sizeof(*qp), NULL, 0);
}

static void *use(void *path)
{
	struct mlx5_ib_alloc_ucontext_req_v2 own_context = {
		.total_num_bfregs = 4, .num_low_latency_bfregs = 1,
	};
	struct mlx5_ib_create_cq own_cq = { .cqe_size = 64 };
	struct mlx5_ib_create_qp own_qp = {
		.sq_wqe_count = 4, .rq_wqe_count = 4, .rq_wqe_shift = 4, .uidx = 0xffffff,
	};
	struct ib_uverbs_get_context context = { 0 };
	struct ib_uverbs_alloc_pd pd = { 0 };
	struct ib_uverbs_create_cq cq = { .cqe = 63, .comp_channel = -1 };
	struct ib_uverbs_create_qp create = {
		.max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
		.qp_type = RC,
	};
	struct ib_uverbs_modify_qp qp = {
		.port_num = 1, .path_mtu = 3, .min_rnr_timer = 12, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1, .max_dest_rd_atomic = 1,
		.dest = { .dlid = 1, .port_num = 1, .is_global = 1, .hop_limit = 1 },
	};
	uint8_t *memory = aligned_alloc(4096, 3 * 4096);
	struct ib_uverbs_create_qp_resp *made = (void *)answer;

	if (!memory)
		exit(2);
	memset(memory, 0, 3 * 4096);
	device = open(path, O_RDWR | O_CLOEXEC);
	if (device < 0) {
		perror(path);
		exit(1);
	}
	ask("context", IB_USER_VERBS_CMD_GET_CONTEXT, &context, sizeof(context),
	    &own_context, sizeof(own_context));
	ask("PD", IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), NULL, 0);
	create.pd_handle = ((struct ib_uverbs_alloc_pd_resp *)answer)->pd_handle;
	own_cq.buf_addr = (uintptr_t)memory;
	own_cq.db_addr = (uintptr_t)memory + 2 * 4096;
	ask("CQ", IB_USER_VERBS_CMD_CREATE_CQ, &cq, sizeof(cq), &own_cq, sizeof(own_cq));
	create.send_cq_handle = ((struct ib_uverbs_create_cq_resp *)answer)->cq_handle;
	create.recv_cq_handle = create.send_cq_handle;
	own_qp.buf_addr = (uintptr_t)memory + 4096;
	own_qp.db_addr = own_cq.db_addr + 64;
	ask("QP", IB_USER_VERBS_CMD_CREATE_QP, &create, sizeof(create), &own_qp, sizeof(own_qp));
	qp.qp_handle = made->qp_handle;
	qp.dest_qp_num = made->qpn;
	modify(&qp, INIT, PKEY | PORT | ACCESS);
	/* Its own port GID would do, and so does any: nothing is sent. */
	qp.dest.dgid[0] = 0xfe;
	qp.dest.dgid[1] = 0x80;
	qp.dest.dgid[15] = 1;
	modify(&qp, RTR, AV | MTU | DEST_QPN | RQ_PSN | DEST_RD_ATOMIC | RNR_TIMER);
	modify(&qp, RTS, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | RD_ATOMIC);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	if (argc == 2)
		use(argv[1]);
	else if (pthread_create(&thread, NULL, use, argv[1]) || pthread_join(thread, NULL))
		return 1;
	puts("connected");
	fflush(stdout);
	pause();
	return 0;
}
